"""`install.sh` as a stranger runs it: by several shells, from a server on this machine, and where something is wrong."""

import functools
import http.server
import os
import re
import shutil
import subprocess
import threading
from pathlib import Path

CUTS = 87


def checked(folder, downloads, version, processor, libraries):
    """Does each check; says what it has shown."""
    served = folder / "served"
    served.mkdir()
    archive = f"roomtide-{version}-linux-{processor}.tar.gz"
    shutil.copy(downloads / archive, served)
    with Server(served) as url:
        run = Installer(folder, (downloads / "install.sh").read_text(), url, version)
        yield from installs(run, folder)
        yield from replaces(run, folder)
        yield from without_libc(run, folder, libraries)
        yield from cut(run, folder)
        yield from refused(run, folder, served / archive)
        yield from wrong_processor(run, folder, downloads, version, processor)
        yield from no_room(run, folder)


class Server:
    """Serves a folder on any port of this machine, as a mirror would."""

    def __init__(self, folder):
        handler = functools.partial(Silent, directory=folder)
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.server.handle_error = lambda *_: None  # whose disk is full hangs up

    def __enter__(self):
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return f"http://127.0.0.1:{self.server.server_port}"

    def __exit__(self, *_):
        self.server.shutdown()


class Silent(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


class Installer:
    """The script, its mirror and the environment of a new user."""

    def __init__(self, folder, script, url, version):
        self.script, self.url, self.version = script, url, version
        self.home = folder / "a home"
        self.home.mkdir()

    def __call__(self, *, script=None, shell=("dash",), **env):
        """Runs the script from a pipe, as `curl | sh` does; exit code and words."""
        env = {"HOME": str(self.home), "PATH": "/usr/bin:/bin", "ROOMTIDE_URL": self.url} | env
        env = {name: value for name, value in env.items() if value is not None}
        ran = subprocess.run((shutil.which(shell[0]), *shell[1:]), input=script or self.script, text=True, capture_output=True, env=env, timeout=120)
        return ran.returncode, ran.stdout + ran.stderr

    def fails(self, why, bin, **options):
        """It ends with 1, says why, and leaves the folder as it was."""
        before = contents(bin)
        code, said = self(ROOMTIDE_BIN=str(bin), **options)
        assert code == 1 and re.search(why, said) and "nothing was installed" in said, (code, said)
        assert contents(bin) == before, contents(bin)


def contents(folder):
    return {file.name: file.stat().st_size for file in folder.iterdir()} if folder.is_dir() else None


def installs(run, folder):
    """Into ~/.local/bin of a home with a blank in its name; by each shell."""
    target = run.home / ".local" / "bin"
    for shell in [("dash",), ("bash",), ("bash", "--posix"), ("busybox", "sh")]:
        shutil.rmtree(run.home / ".local", ignore_errors=True)
        code, said = run(shell=shell)
        assert code == 0 and f"roomtide {run.version} is in {target}.\n" in said, said
        assert os.listdir(target) == ["roomtide"] and os.listdir(run.home) == [".local"]
        # What it says can be pasted.
        start, remove = re.search(r"Start it with: +(.*)\n(?:.*) with: +(.*)\n", said).groups()
        assert subprocess.run(["sh", "-c", f"{start} --version"], text=True, capture_output=True).stdout.startswith("roomtide ")
        assert subprocess.run(["sh", "-c", remove]).returncode == 0 and os.listdir(target) == []
    code, said = run(PATH=f"/usr/bin:/bin:{target}")
    assert code == 0 and 'Start it with:   "roomtide"\n' in said, said
    code, said = run(ROOMTIDE_BIN=str(folder / "elsewhere"), HOME=None)
    assert code == 0 and os.listdir(folder / "elsewhere") == ["roomtide"], said
    yield "install.sh by dash, bash and busybox, into a home with a blank in its name, and what it says can be pasted"


def replaces(run, folder):
    """Over a command that runs, and over another version, which is named."""
    bin = folder / "elsewhere"
    with subprocess.Popen([bin / "roomtide", "qr"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as running:
        inode = (bin / "roomtide").stat().st_ino
        code, said = run(ROOMTIDE_BIN=str(bin))
        assert code == 0 and f", in place of roomtide {run.version}" in said and running.poll() is None, said
        assert (bin / "roomtide").stat().st_ino != inode
        running.communicate(b"text")
    (bin / "roomtide").write_text("#!/bin/sh\necho roomtide 0.0.9\n")
    code, said = run(ROOMTIDE_BIN=str(bin))
    assert code == 0 and ", in place of roomtide 0.0.9." in said, said
    yield "a command that runs is replaced and runs on; an older version is named"


def without_libc(run, folder, libraries):
    """In a root that has busybox and, for a command that is not static, its libraries."""
    root = folder / "root"
    for name in ("bin", "dev", "home"):
        (root / name).mkdir(parents=True)
    shutil.copy(shutil.which("busybox"), root / "bin")
    subprocess.run(["chroot", root, "/bin/busybox", "--install", "-s", "/bin"], check=True)
    (root / "dev" / "null").touch()
    for library in libraries:
        (root / library.relative_to("/")).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(library, root / library.relative_to("/"))
    code, said = run(shell=("chroot", str(root), "/bin/sh"), HOME="/home", PATH="/bin")
    assert code == 0 and f"roomtide {run.version} is in /home/.local/bin." in said, said
    assert os.listdir(root / "home" / ".local" / "bin") == ["roomtide"]
    with_libraries = " and the libraries of this build" if libraries else " alone"
    yield f"install.sh by busybox's sh, wget, tar and sha256sum in a root with busybox{with_libraries}"


def cut(run, folder):
    """A script whose download broke off does nothing."""
    bin = folder / "cut"
    end = run.script.rindex("main ")
    for n in range(CUTS):
        run(script=run.script[: end * (n + 1) // CUTS], ROOMTIDE_BIN=str(bin))
        assert not bin.exists(), n
    yield f"install.sh that is cut at {CUTS} places does nothing"


def refused(run, folder, archive):
    """Damage and absence on the way."""
    bin = folder / "elsewhere"
    whole = archive.read_bytes()
    archive.write_bytes(whole[:1000] + bytes([whole[1000] ^ 1]) + whole[1001:])
    run.fails("has the checksum [0-9a-f]{64}, not ", bin)
    archive.write_bytes(whole[:-1])
    run.fails("has the checksum", bin)
    archive.unlink()
    for tools in (("curl",), ("wget",)):
        run.fails(r"/roomtide-\S+ cannot be fetched", bin, PATH=only(folder, tools))
    made = folder / "made" / "by it" / "bin"
    made.parents[1].mkdir()
    run.fails(r"/roomtide-\S+ cannot be fetched", made)
    assert os.listdir(made.parents[1]) == [], "what it made is gone, and what was there stays"
    archive.write_bytes(whole)
    run.fails("needs curl or wget", bin, PATH=only(folder, ()))
    run.fails("names no address", bin, ROOMTIDE_URL=None)
    run.fails("no archive for Linux on riscv64", bin, PATH=f"{machine(folder, 'riscv64')}:/usr/bin:/bin")
    yield "a flipped byte, a byte that is missing, no file, no address, no tool, no such processor: refused in words"


def only(folder, tools):
    """A folder of the programs that the script needs, with these to fetch by."""
    path = folder / "-".join(("only", *tools))
    path.mkdir()
    for tool in ("uname", "dirname", "mkdir", "mktemp", "rm", "rmdir", "mv", "tar", "gzip", "cut", "sha256sum", *tools):
        (path / tool).symlink_to(shutil.which(tool) or shutil.which("busybox"))
    return str(path)


def machine(folder, name):
    """A folder with a `uname` of another processor."""
    path = folder / f"machine {name}"
    path.mkdir()
    (path / "uname").write_text(f'#!/bin/sh\n[ "$1" = -s ] && echo Linux || echo {name}\n')
    (path / "uname").chmod(0o755)
    return path


def wrong_processor(run, folder, downloads, version, processor):
    """A command that does not run here does not replace the one that does."""
    other = "x86_64" if processor == "aarch64" else "aarch64"
    archive = f"roomtide-{version}-linux-{other}.tar.gz"
    if not (downloads / archive).exists():
        return
    with Server(downloads) as url:
        path = f"{machine(folder, other)}:/usr/bin:/bin"
        run.fails("does not run on this machine", folder / "elsewhere", PATH=path, ROOMTIDE_URL=url)
    yield "an archive of the wrong processor is not installed"


def no_room(run, folder):
    """A disk that is full before, and after, the archive is on it; one that may not be written."""
    size = len((folder / "served" / f"roomtide-{run.version}-linux-{os.uname().machine}.tar.gz").read_bytes())
    bin = folder / "disk"
    bin.mkdir()
    for bytes, why in [(size // 2, "cannot be fetched"), (size + (1 << 20), "cannot be unpacked")]:
        with mounted(bin, f"size={bytes}"):
            (bin / "roomtide").write_text("old")
            run.fails(why, bin)
    with mounted(bin, "ro"):
        run.fails("cannot be written; ROOMTIDE_BIN=FOLDER", bin)
    run.fails("cannot be written", Path("/dev/null/bin"))
    yield "a full disk, and one that may not be written: refused, and the command of before stays"


class mounted:
    """A file system in memory."""

    def __init__(self, folder, options):
        self.folder = folder
        subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", folder], check=True)

    def __enter__(self):
        return self.folder

    def __exit__(self, *_):
        subprocess.run(["umount", self.folder], check=True)
