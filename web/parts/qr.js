// A text as a QR code, drawn. Reads none. In bytes, with the lowest level of correction: a screen has no scratches.

import { svg } from "./dom.js";

/** By version: the codewords of correction of a block, and the number of blocks (ISO/IEC 18004, level L). */
const CORRECTION = [7, 10, 15, 20, 26, 18, 20, 24, 30, 18, 20, 24, 26, 30, 22, 24, 28, 30, 28, 28, 28, 28, 30, 30, 26];
const BLOCKS = [1, 1, 1, 1, 1, 2, 2, 2, 2, 4, 4, 4, 4, 4, 6, 6, 6, 6, 7, 8, 8, 9, 9, 10, 12];

/** The modules of a version that are neither pattern nor format. @param {number} version */
function modulesOf(version) {
  let count = (16 * version + 128) * version + 64;
  if (version >= 2) {
    const places = Math.floor(version / 7) + 2;
    count -= (25 * places - 10) * places - 55;
    if (version >= 7) count -= 36;
  }
  return count;
}

/** The product of two elements of GF(256). @param {number} a @param {number} b */
function times(a, b) {
  let product = 0;
  for (let bit = 7; bit >= 0; bit -= 1) {
    product = (product << 1) ^ ((product >>> 7) * 0x11d);
    product ^= ((b >>> bit) & 1) * a;
  }
  return product;
}

/** The words of correction of a block. @param {number[]} data @param {number} count */
function corrected(data, count) {
  /** @type {number[]} */
  const divisor = new Array(count).fill(0);
  divisor[count - 1] = 1;
  let root = 1;
  for (let i = 0; i < count; i += 1) {
    for (let j = 0; j < count; j += 1) divisor[j] = times(divisor[j], root) ^ (divisor[j + 1] ?? 0);
    root = times(root, 2);
  }
  /** @type {number[]} */
  const rest = new Array(count).fill(0);
  for (const byte of data) {
    const factor = byte ^ (rest.shift() ?? 0);
    rest.push(0);
    divisor.forEach((it, place) => { rest[place] ^= times(it, factor); });
  }
  return rest;
}

/** All words of a code, blocks interleaved. @param {number[]} data @param {number} version */
function interleaved(data, version) {
  const [blocks, count] = [BLOCKS[version - 1], CORRECTION[version - 1]];
  const all = Math.floor(modulesOf(version) / 8);
  const short = blocks - (all % blocks);
  const length = Math.floor(all / blocks) - count;
  /** @type {number[][]} */
  const parts = [];
  for (let n = 0, at = 0; n < blocks; n += 1) {
    const size = length + (n < short ? 0 : 1);
    parts.push(data.slice(at, at + size));
    at += size;
  }
  const checks = parts.map((it) => corrected(it, count));
  const woven = Array.from({ length: length + 1 }, (_, n) => parts.flatMap((it) => (n < it.length ? [it[n]] : [])));
  return [...woven.flat(), ...Array.from({ length: count }, (_, n) => checks.map((it) => it[n])).flat()];
}

/**
 * The modules of the code of a text; null if it is too long.
 * @param {string} text
 * @returns {boolean[][] | null}
 */
export function qrOf(text) {
  const bytes = [...new TextEncoder().encode(text)];
  const room = (/** @type {number} */ it) => Math.floor(modulesOf(it) / 8) - CORRECTION[it - 1] * BLOCKS[it - 1];
  const version = CORRECTION.findIndex((_, n) => 4 + (n < 9 ? 8 : 16) + bytes.length * 8 <= room(n + 1) * 8) + 1;
  if (!version) return null;
  const bits = [...(0b0100).toString(2).padStart(4, "0"), ...bytes.length.toString(2).padStart(version < 10 ? 8 : 16, "0"), ...bytes.map((it) => it.toString(2).padStart(8, "0")).join("")];
  bits.push(..."0".repeat(Math.min(4, room(version) * 8 - bits.length)));
  while (bits.length % 8) bits.push("0");
  const data = Array.from({ length: bits.length / 8 }, (_, n) => parseInt(bits.slice(n * 8, n * 8 + 8).join(""), 2));
  for (let pad = 0xec; data.length < room(version); pad ^= 0xec ^ 0x11) data.push(pad);
  return placed(interleaved(data, version), version);
}

/** @param {number[]} words @param {number} version */
function placed(words, version) {
  const size = version * 4 + 17;
  const modules = Array.from({ length: size }, () => new Array(size).fill(false));
  const isFixed = Array.from({ length: size }, () => new Array(size).fill(false));
  const set = (/** @type {number} */ x, /** @type {number} */ y, /** @type {boolean} */ isDark) => {
    if (x < 0 || y < 0 || x >= size || y >= size) return;
    modules[y][x] = isDark;
    isFixed[y][x] = true;
  };
  for (let n = 0; n < size; n += 1) {
    set(6, n, n % 2 === 0);
    set(n, 6, n % 2 === 0);
  }
  for (const [x, y] of [[3, 3], [size - 4, 3], [3, size - 4]]) for (let dx = -4; dx <= 4; dx += 1) for (let dy = -4; dy <= 4; dy += 1) {
    const far = Math.max(Math.abs(dx), Math.abs(dy));
    set(x + dx, y + dy, far !== 2 && far !== 4);
  }
  const places = alignments(version);
  places.forEach((x, i) => places.forEach((y, j) => {
    const isCorner = (i === 0 && j === 0) || (i === 0 && j === places.length - 1) || (i === places.length - 1 && j === 0);
    if (isCorner) return;
    for (let dx = -2; dx <= 2; dx += 1) for (let dy = -2; dy <= 2; dy += 1) set(x + dx, y + dy, Math.max(Math.abs(dx), Math.abs(dy)) !== 1);
  }));
  formats(set, size, 0);
  versions(set, size, version);
  let bit = 0;
  for (let right = size - 1; right >= 1; right -= 2) {
    if (right === 6) right = 5;
    for (let step = 0; step < size; step += 1) for (const x of [right, right - 1]) {
      const y = ((right + 1) & 2) === 0 ? size - 1 - step : step;
      if (isFixed[y][x]) continue;
      const isDark = bit < words.length * 8 && ((words[bit >>> 3] >>> (7 - (bit & 7))) & 1) === 1;
      bit += 1;
      // Mask 0 only: readers take any, and the others are for print.
      modules[y][x] = isDark !== ((x + y) % 2 === 0);
    }
  }
  return modules;
}

/** Where the patterns of alignment are. @param {number} version */
function alignments(version) {
  if (version === 1) return [];
  const count = Math.floor(version / 7) + 2;
  const step = Math.floor((version * 8 + count * 3 + 5) / (count * 4 - 4)) * 2;
  const places = [6];
  for (let at = version * 4 + 10; places.length < count; at -= step) places.splice(1, 0, at);
  return places;
}

/** @param {(x: number, y: number, isDark: boolean) => void} set @param {number} size @param {number} mask */
function formats(set, size, mask) {
  const data = (1 << 3) | mask;
  let rest = data;
  for (let n = 0; n < 10; n += 1) rest = (rest << 1) ^ ((rest >>> 9) * 0x537);
  const bits = ((data << 10) | rest) ^ 0x5412;
  const is = (/** @type {number} */ n) => ((bits >>> n) & 1) === 1;
  for (let n = 0; n <= 5; n += 1) set(8, n, is(n));
  set(8, 7, is(6));
  set(8, 8, is(7));
  set(7, 8, is(8));
  for (let n = 9; n < 15; n += 1) set(14 - n, 8, is(n));
  for (let n = 0; n < 8; n += 1) set(size - 1 - n, 8, is(n));
  for (let n = 8; n < 15; n += 1) set(8, size - 15 + n, is(n));
  set(8, size - 8, true);
}

/** @param {(x: number, y: number, isDark: boolean) => void} set @param {number} size @param {number} version */
function versions(set, size, version) {
  if (version < 7) return;
  let rest = version;
  for (let n = 0; n < 12; n += 1) rest = (rest << 1) ^ ((rest >>> 11) * 0x1f25);
  const bits = (version << 12) | rest;
  for (let n = 0; n < 18; n += 1) {
    const isDark = ((bits >>> n) & 1) === 1;
    const [a, b] = [size - 11 + (n % 3), Math.floor(n / 3)];
    set(a, b, isDark);
    set(b, a, isDark);
  }
}

/**
 * The drawing of a code; null if the text is too long.
 * @param {string} text
 * @param {string} label
 */
export function qrCode(text, label) {
  const modules = qrOf(text);
  if (!modules) return null;
  const size = modules.length + 8;
  const path = modules.flatMap((row, y) => row.flatMap((isDark, x) => (isDark ? [`M${x + 4} ${y + 4}h1v1h-1z`] : []))).join("");
  return svg("svg", { class: "qr", viewBox: `0 0 ${size} ${size}`, role: "img", "aria-label": label }, svg("rect", { width: String(size), height: String(size), fill: "#fff" }), svg("path", { d: path, fill: "#000" }));
}
