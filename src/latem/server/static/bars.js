// Bars: one length each, or to either side of a middle line.

import { h, short, spaced } from "./dom.js";

/** A bar that fills a share of its track; a number stands beside it, so it is not read out. */
export function bar(share, className = "") {
  const width = `${(100 * Math.min(1, Math.max(0, share || 0))).toFixed(2)}%`;
  return h(
    "span", { class: `bar ${className}`, "aria-hidden": "true" },
    h("span", { class: "fill", vars: { "--width": width } }),
  );
}

function diverging(value, largest) {
  const width = `${(largest ? (50 * Math.abs(value)) / largest : 0).toFixed(2)}%`;
  return h(
    "span", { class: `bar both ${value < 0 ? "against" : "for"}`, "aria-hidden": "true" },
    h("span", { class: "fill", vars: { "--width": width } }),
  );
}

function line(label, value, largest) {
  return [
    h("span", { class: "name" }, spaced(label)),
    diverging(value, largest),
    h("span", { class: "value" }, short(value, true)),
  ];
}

function familyItem(family, largest) {
  const members = family.members ?? [];
  const alone = members.length < 2 && !family.rest?.n;
  if (alone) {
    const only = members[0];
    const label = only && only.name !== family.name ? `${family.name}: ${only.words}` : family.words;
    return h("li", {}, h("div", { class: "pull" }, line(label, family.contribution, largest)));
  }
  const rows = members.map((member) => h(
    "li", { class: "pull" }, line(member.words, member.contribution, largest),
  ));
  if (family.rest?.n) {
    rows.push(h("li", { class: "pull rest" }, line(`${family.rest.n} more`, family.rest.contribution, largest)));
  }
  return h(
    "li", {},
    h(
      "details", {},
      h("summary", { class: "pull" }, line(family.words, family.contribution, largest)),
      h("ul", { class: "pulls members" }, rows),
    ),
  );
}

/** What each family of traits adds to a lead; families open to show their members. */
export function pulls(families, rest, lead) {
  const sizes = families.map((family) => Math.abs(family.contribution));
  const largest = Math.max(...sizes, rest?.n ? Math.abs(rest.contribution) : 0);
  const items = families.map((family) => familyItem(family, largest));
  if (rest?.n) {
    items.push(h("li", {}, h("div", { class: "pull rest" }, line(`${rest.n} others together`, rest.contribution, largest))));
  }
  items.push(h(
    "li", { class: "sum" },
    h(
      "div", { class: "pull" },
      h("span", { class: "name" }, "Sum: the lead"), h("span", {}),
      h("span", { class: "value" }, short(lead, true)),
    ),
  ));
  return h("ul", { class: "pulls" }, items);
}
