// Line charts in SVG: both axes run from 0 to 1, as shares do.

import { h, s } from "./dom.js";

const WIDTH = 420;
const HEIGHT = 340;
const EDGE = { left: 70, right: 18, top: 12, bottom: 46 };

function scale(low, high, from, to) {
  return (value) => from + ((value - low) / (high - low || 1)) * (to - from);
}

/** Where the lines of a grid stand, from nothing to the highest. */
function ticks(high) {
  const step = high > 0.5 ? 0.2 : 0.1;
  return Array.from({ length: Math.floor(high / step + 1e-6) + 1 }, (_, index) => index * step);
}

function whole(share) {
  return `${Math.round(100 * share)} %`;
}

/**
 * A chart of shares.
 *
 * lines: [{points: [[x, y], ...], name: class of the line, dots: [radius, ...]}]; diagonal draws
 * where both are equal. mark(x, y) moves a point that stands out. The legend is drawn as HTML.
 */
export function shareChart({ label, across, up, lines, diagonal = false, highX = 1, highY = 1 }) {
  const x = scale(0, highX, EDGE.left, WIDTH - EDGE.right);
  const y = scale(0, highY, HEIGHT - EDGE.bottom, EDGE.top);
  const parts = [];
  for (const at of ticks(highY)) {
    parts.push(
      s("line", { class: "grid-line", x1: x(0), x2: x(highX), y1: y(at), y2: y(at) }),
      s("text", { class: "tick", x: x(0) - 8, y: y(at) + 4, "text-anchor": "end" }, whole(at)),
    );
  }
  for (const at of ticks(highX)) {
    parts.push(
      s("line", { class: "grid-line", x1: x(at), x2: x(at), y1: y(0), y2: y(highY) }),
      s("text", { class: "tick", x: x(at), y: y(0) + 18, "text-anchor": "middle" }, whole(at)),
    );
  }
  if (diagonal) parts.push(s("line", { class: "diagonal", x1: x(0), y1: y(0), x2: x(highX), y2: y(highY) }));
  for (const line of lines) {
    const d = line.points.map(([px, py], index) => `${index ? "L" : "M"}${x(px).toFixed(1)} ${y(py).toFixed(1)}`).join("");
    parts.push(s("path", { class: `curve ${line.name}`, d }));
    (line.dots ?? []).forEach((radius, index) => {
      const [px, py] = line.points[index];
      parts.push(s("circle", { class: `dot ${line.name}`, cx: x(px), cy: y(py), r: radius }));
    });
  }
  const chosen = s("circle", { class: "mark chosen", r: 6, visibility: "hidden" });
  const moving = s("circle", { class: "mark moving", r: 7, visibility: "hidden" });
  const svg = s(
    "svg", { class: "chart", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": label },
    parts,
    s("text", { class: "axis", x: (x(0) + x(highX)) / 2, y: HEIGHT - 6, "text-anchor": "middle" }, across),
    s("text", {
      class: "axis", "text-anchor": "middle",
      transform: `translate(13 ${(y(0) + y(highY)) / 2}) rotate(-90)`,
    }, up),
    chosen, moving,
  );
  function put(circle, px, py) {
    circle.setAttribute("cx", x(px));
    circle.setAttribute("cy", y(py));
    circle.setAttribute("visibility", "visible");
  }
  return { svg, choose: (px, py) => put(chosen, px, py), mark: (px, py) => put(moving, px, py) };
}

/** Names of the lines of a chart with a sample of each. */
export function legend(entries) {
  return h("ul", { class: "legend" }, entries.map(([name, text]) => h("li", {}, h("span", { class: `sample ${name}`, "aria-hidden": "true" }), text)));
}

/** A share just above the largest of some, rounded up to a tenth, so that a curve fills its chart. */
export function ceiling(values) {
  return Math.min(1, Math.max(0.1, Math.ceil(10 * Math.max(...values) + 0.2) / 10));
}
