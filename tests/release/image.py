"""The image as an owner uses it: copied by skopeo, unpacked by umoci, run by runc with a root that is read-only."""

import json
import re
import shutil
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request

USER = 65532
ARGUMENTS = ["/roomtide", "--host", "0.0.0.0", "--auth", "--empty", "--data-dir", "/data"]
READING = {"device_id": "attic-air", "temperature": 21.5}
# A processor, as Linux names it and as images do.
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


def checked(folder, downloads, version, processor, libraries):
    """Does each check; says what it has shown."""
    archive = downloads / f"roomtide-{version}.oci.tar"
    made = [name for name in ARCHITECTURES if (downloads / f"roomtide-{version}-linux-{name}.tar.gz").exists()]
    inspected(archive, version, [ARCHITECTURES[name] for name in made])
    yield f"skopeo reads the image for {' and '.join(made)}"
    bundle = unpacked(folder, archive, version, ARCHITECTURES[processor])
    for library in libraries:
        at = bundle / "rootfs" / library.relative_to("/")
        at.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(library, at)
    with_libraries = ", and the libraries of this build" if libraries else " and nothing else"
    yield f"umoci unpacks it: /roomtide, /data{with_libraries}"
    yield from used(Container(folder, bundle))


def inspected(archive, version, architectures):
    for architecture in architectures:
        image = json.loads(output("skopeo", "inspect", "--config", f"oci-archive:{archive}:{version}", architecture=architecture))
        assert (image["architecture"], image["os"]) == (architecture, "linux"), image
        config = image["config"]
        assert [*config["Entrypoint"], *config["Cmd"]] == ARGUMENTS, config
        assert (config["User"], config["WorkingDir"], config["StopSignal"]) == (f"{USER}:{USER}", "/data", "SIGTERM")
        assert (config["Volumes"], config["ExposedPorts"]) == ({"/data": {}}, {"8080/tcp": {}})
        assert config["Labels"]["org.opencontainers.image.version"] == version


def unpacked(folder, archive, version, architecture):
    """The image of this processor, as the bundle that a runtime takes."""
    # Its own tools know no name with a blank.
    output("skopeo", "copy", "-q", f"oci-archive:{archive}:{version}", f"oci:{folder}/oci:this", architecture=architecture)
    bundle = folder / "bundle"
    output("umoci", "unpack", "--image", f"{folder}/oci:this", bundle)
    root = bundle / "rootfs"
    assert sorted(entry.name for entry in root.iterdir()) == ["data", "roomtide"]
    assert (root / "data").stat().st_uid == USER and (root / "roomtide").stat().st_mode & 0o7777 == 0o755
    return bundle


def output(program, *words, architecture=None):
    chosen = ["--override-arch", architecture] if architecture else []
    ran = subprocess.run([program, *chosen, *map(str, words)], text=True, capture_output=True)
    assert ran.returncode == 0, (program, words, ran.stdout + ran.stderr)
    return ran.stdout


class Container:
    """A container of the bundle, in the network of this machine, with a folder as its volume."""

    def __init__(self, folder, bundle):
        self.folder, self.bundle, self.process = folder, bundle, None
        self.id = f"roomtide-{bundle.stat().st_ino}"
        self.data = folder / "volume"
        self.data.mkdir(0o700)
        shutil.chown(self.data, USER, USER)
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.unpacked = json.loads((bundle / "config.json").read_text())
        assert self.unpacked["process"]["args"] == ARGUMENTS

    def configure(self, args, **env):
        """As strict as a runtime can be: nothing may be written but the volume, nothing may be gained."""
        config = json.loads(json.dumps(self.unpacked))
        process = config["process"]
        process |= {"terminal": False, "args": args, "capabilities": {}, "noNewPrivileges": True}
        process["env"] += [f"{name}={value}" for name, value in env.items()]
        config["root"]["readonly"] = True
        volume = {"destination": "/data", "type": "bind", "source": str(self.data), "options": ["rbind", "rw", "nosuid", "nodev"]}
        # Without limits no cgroup has to be made, which a machine that is a container itself refuses.
        config["mounts"] = [mount for mount in config["mounts"] if mount["destination"] not in ("/data", "/sys/fs/cgroup", "/sys")]
        config["mounts"].append(volume)
        config["linux"]["namespaces"] = [it for it in config["linux"]["namespaces"] if it["type"] != "network"]
        (self.bundle / "config.json").write_text(json.dumps(config))

    def start(self, *words, **env):
        """Starts the server; what it has printed when it listens and greets."""
        self.configure([*ARGUMENTS, "--port", str(self.port), *words], **env)
        log = self.folder / "log"
        with log.open("w") as into:
            self.process = subprocess.Popen(["runc", "run", "--bundle", self.bundle, self.id], stdin=subprocess.DEVNULL, stdout=into, stderr=into)
        for _ in range(600):
            said = log.read_text()
            if "Ctrl-C stops" in said:
                return said
            assert self.process.poll() is None, said
            time.sleep(0.1)
        raise AssertionError(said)

    def stop(self):
        """SIGTERM, as `docker stop` sends it."""
        output("runc", "kill", self.id, "TERM")
        assert self.process.wait(30) == 0, (self.folder / "log").read_text()

    def ended(self):
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
            subprocess.run(["runc", "delete", "--force", self.id], capture_output=True)

    def health(self):
        """`roomtide health` in a container of its own; its exit code and its words."""
        self.configure(["/roomtide", "health", "--url", self.url])
        ran = subprocess.run(["runc", "run", "--bundle", self.bundle, f"{self.id}-health"], text=True, capture_output=True, stdin=subprocess.DEVNULL)
        return ran.returncode, ran.stdout + ran.stderr

    def ask(self, path, token=None, reading=None):
        """The status and the text of an answer."""
        headers = {"content-type": "application/json"} | ({"authorization": f"Bearer {token}"} if token else {})
        body = json.dumps(reading).encode() if reading else None
        try:
            with urllib.request.urlopen(urllib.request.Request(self.url + path, body, headers), timeout=30) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as refused:
            return refused.code, refused.read().decode()


def used(container):
    try:
        yield from first_start(container)
    finally:
        container.ended()


def first_start(container):
    said = container.start(TZ="Asia/Tokyo")
    assert "  zone    Asia/Tokyo\n" in said, said
    links = re.findall(r"http://\S+/#token=(rt_[\w-]+)", said)
    assert len(links) == 1, said
    assert container.ask("/")[1].startswith("<!doctype html>") and container.ask("/devices")[0] == 401
    assert container.ask("/readings", links[0], READING)[0] in (200, 201)
    assert '"attic-air"' in container.ask("/devices", links[0])[1]
    assert container.health() == (0, ""), container.health()
    listed = output("runc", "exec", container.id, "roomtide", "token", "list", "--data-dir", "/data")
    assert listed.count("\n") == 1 and "first link" in listed, listed
    yield "runc runs it with a read-only root, no capability and TZ; its log has the link, and the link's token opens the page"

    container.stop()
    code, why = container.health()
    assert code == 1 and "cannot reach" in why, (code, why)
    again = container.start("--page-url", "https://home.example.org/roomtide")
    assert "#token=" not in again and "https://home.example.org/roomtide/ in a browser" in again, again
    assert "  zone    Asia/Tokyo\n" in again, again
    status, latest = container.ask("/devices/attic-air/latest", links[0])
    assert status == 200 and "21.5" in latest, latest
    container.stop()
    yield "SIGTERM ends it with 0, and `roomtide health` then says 1; started again it has the reading and the token"
