// A server of this project for a check of the page: started, asked, stopped. Opens no browser.

import { spawn, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** The processes that may be left where the check ends by an error that nothing catches. */
const running = new Set();
process.on("exit", () => running.forEach((it) => it.kill("SIGKILL")));

export class Server {
  /**
   * @param {string} program
   * @param {string[]} options
   * @param {string} zone of its days
   */
  constructor(program, options, zone = "Europe/Brussels") {
    this.program = program;
    this.calledAs = program;
    this.directory = mkdtempSync(join(tmpdir(), "roomtide-web-"));
    const place = options.includes("--memory") ? [] : ["--data-dir", join(this.directory, "data")];
    this.options = [...options, ...place, "--time-zone", zone];
    this.port = 0;
    this.url = "";
    /** Where readings are stored, if that is another address. */
    this.ingest = "";
  }

  /** Starts it, on the port of before if there was one, and waits until it listens and `until` is printed. */
  start(until = "Roomtide listens on") {
    this.process = spawn(this.program, [...this.options, "--port", String(this.port)], { argv0: this.calledAs, stdio: ["ignore", "pipe", "inherit"] });
    running.add(this.process);
    return new Promise((resolve, reject) => {
      let printed = "";
      this.process.on("exit", (code) => reject(new Error(`the server ended with ${code}: ${printed}`)));
      this.process.stdout.on("data", (text) => {
        printed += text;
        const found = /listens on (http:\/\/[^\s]+:(\d+))/.exec(printed);
        if (!found || !printed.includes(until)) return;
        [this.url, this.port] = [found[1], Number(found[2])];
        this.ingest = /ingest {2}(http:\/\/[^,\s]+),/.exec(printed)?.[1] ?? "";
        resolve(this);
      });
    });
  }

  /**
   * Starts it with readings, which are stored past it: that takes seconds for years.
   * @param {any[]} readings
   */
  async startWith(readings) {
    // Its first start says in which time zone its days are.
    await this.start();
    await this.stop();
    const file = join(this.directory, "readings.ndjson");
    writeFileSync(file, readings.map((it) => JSON.stringify(it)).join("\n"));
    const made = spawnSync(this.program, ["import", file, "--data-dir", join(this.directory, "data")], { encoding: "utf8" });
    if (made.status !== 0) throw new Error(made.stderr + made.stdout);
    // Nobody knows its first port, and another program may have it by now.
    this.port = 0;
    return this.start();
  }

  /** Waits until the rollups have all readings: that takes seconds, on a busy machine minutes. */
  async rolledUp() {
    for (let look = 0; look < 300; look += 1) {
      const answer = await this.ask("GET", "/series?from=-30d&every=1d&devices=1&fn=mean,count");
      if (!answer.rollups_lack) return;
      await new Promise((resolve) => setTimeout(resolve, 1_000));
    }
    throw new Error("the rollups lack readings");
  }

  async stop() {
    this.process.removeAllListeners("exit");
    if (this.process.exitCode !== null || this.process.signalCode !== null) return;
    const ended = new Promise((resolve) => this.process.on("exit", resolve));
    this.process.kill("SIGTERM");
    await ended;
    running.delete(this.process);
  }

  async remove() {
    await this.stop();
    rmSync(this.directory, { recursive: true });
  }

  /**
   * @param {string} scope
   * @param {string[]} options
   */
  token(scope, ...options) {
    const made = spawnSync(this.program, ["token", "create", "--scope", scope, ...options, "--quiet", "--data-dir", join(this.directory, "data")], { encoding: "utf8" });
    if (made.status !== 0) throw new Error(made.stderr);
    return made.stdout.trim();
  }

  /**
   * @param {string} method
   * @param {string} path
   * @param {any} [body]
   * @param {string} [token]
   */
  async ask(method, path, body, token) {
    const headers = { "content-type": "application/json", ...(token && { authorization: `Bearer ${token}` }) };
    const answer = await fetch(this.url + path, { method, headers, body: body && JSON.stringify(body) });
    const text = await answer.text();
    if (!answer.ok) throw new Error(`${method} ${path} answers ${answer.status}: ${text}`);
    return JSON.parse(text);
  }
}
