// What the script of uPlot puts beside the page's own. Has no code.

interface Window {
  uPlot: typeof import("./vendor/uPlot.js");
}
