// A picture of a chart as a file: its title, its time, the chart and its legend. Draws no chart.

import { save } from "../data/api.js";

/** The pixels of the picture's edge and of a line of text, at the density of the screen. */
const [EDGE, LINE] = [16, 20];

/**
 * Saves a chart as a PNG file.
 * @param {HTMLCanvasElement} chart
 * @param {{title: string, when: string, summary: string[], colours: string[]}} about
 */
export function savePicture(chart, { title, when, summary, colours }) {
  const density = devicePixelRatio;
  const style = getComputedStyle(document.documentElement);
  const canvas = document.createElement("canvas");
  const heads = [title, when].filter(Boolean);
  canvas.width = chart.width + 2 * EDGE * density;
  canvas.height = chart.height + (2 * EDGE + (heads.length + summary.length) * LINE + 8) * density;
  const ctx = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  ctx.fillStyle = style.getPropertyValue("--card");
  ctx.fillRect(0, 0, canvas.width, canvas.height);
  let y = EDGE * density;
  const write = (/** @type {string} */ text, /** @type {string} */ font, /** @type {string} */ colour, indent = 0) => {
    ctx.font = font;
    ctx.fillStyle = colour;
    ctx.fillText(text, (EDGE + indent) * density, y + 14 * density, canvas.width - 2 * EDGE * density);
    y += LINE * density;
  };
  heads.forEach((text, place) => write(text, `${place ? 400 : 700} ${(place ? 13 : 16) * density}px system-ui`, style.getPropertyValue(place ? "--soft" : "--text")));
  ctx.drawImage(chart, EDGE * density, y);
  y += chart.height + 8 * density;
  summary.forEach((text, place) => {
    const colour = colours[place];
    if (colour) {
      ctx.fillStyle = colour;
      ctx.fillRect(EDGE * density, y + 8 * density, 16 * density, 4 * density);
    }
    write(text, `400 ${12 * density}px system-ui`, style.getPropertyValue("--text"), colour ? 22 : 0);
  });
  const name = [title, when].filter(Boolean).join(" ").replace(/[^\p{L}\p{N}]+/gu, "-");
  canvas.toBlob((blob) => blob && save(blob, `${name}.png`));
}
