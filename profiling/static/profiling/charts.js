// Draws each table marked with data-chart above itself. The table stays: it has the same values, for
// who cannot see a picture or runs no scripts.
"use strict";

const NARROW = 260;
let drawn = [];

function colours(table) {
  const style = getComputedStyle(table.closest(".review"));
  // A probe, since a custom property that uses light-dark() is not resolved by itself.
  const probe = document.createElement("span");
  table.closest(".review").append(probe);
  const read = (name) => {
    probe.style.color = `var(${name})`;
    return getComputedStyle(probe).color;
  };
  const found = {
    text: style.color,
    line: read("--r-line"),
    bar: read("--r-bar"),
    point: read("--r-point"),
  };
  probe.remove();
  return found;
}

function canvasAbove(table, height) {
  const figure = document.createElement("div");
  figure.className = "drawing";
  figure.style.height = `${height}px`;
  const canvas = document.createElement("canvas");
  canvas.setAttribute("role", "img");
  canvas.setAttribute("aria-label", `${table.caption.textContent}; the table below says the same`);
  figure.append(canvas);
  table.before(figure);
  return canvas;
}

function common(colour) {
  Chart.defaults.font.family = getComputedStyle(document.body).fontFamily;
  return {
    animation: false,
    responsive: true,
    maintainAspectRatio: false,
    color: colour.text,
    plugins: { legend: { display: false } },
  };
}

function scale(colour, more) {
  return { ticks: { color: colour.text }, grid: { color: colour.line }, ...more };
}

function bars(table, colour) {
  const rows = [...table.tBodies[0].rows].filter((row) => row.cells[1].dataset.value);
  if (!rows.length) return null;
  const canvas = canvasAbove(table, 40 + 26 * rows.length);
  return new Chart(canvas, {
    type: "bar",
    data: {
      labels: rows.map((row) => row.cells[0].textContent),
      datasets: [
        {
          data: rows.map((row) => Number(row.cells[1].dataset.value)),
          backgroundColor: colour.bar,
          maxBarThickness: 16,
        },
      ],
    },
    options: {
      ...common(colour),
      indexAxis: "y",
      scales: {
        x: scale(colour, { min: 0, max: Number(table.dataset.limit) || undefined }),
        y: scale(colour, { grid: { display: false } }),
      },
    },
  });
}

function roofline(table, colour) {
  const rows = [...table.tBodies[0].rows].map((row) => ({ ...row.dataset, label: row.cells[0].textContent }));
  const slope = Number(rows.find((row) => row.kind === "bandwidth").slope);
  const peaks = rows.filter((row) => row.kind === "peak");
  const points = rows.filter((row) => row.kind === "point");
  const ridges = peaks.map((row) => Number(row.work) / slope);
  const all = [...ridges, ...points.map((row) => Number(row.intensity))];
  const [left, right] = [Math.min(...all) / 10, Math.max(...all) * 10];
  const roof = (row, at) => ({
    label: row.label,
    type: "line",
    data: [
      { x: left, y: left * slope },
      { x: ridges[at], y: Number(row.work) },
      { x: right, y: Number(row.work) },
    ],
    borderColor: at ? colour.text : colour.bar,
    borderDash: at ? [6, 4] : [],
    borderWidth: 2,
    pointRadius: 0,
    pointStyle: "line",
  });
  const point = (row) => ({
    label: row.label,
    data: [{ x: Number(row.intensity), y: Number(row.work) }],
    backgroundColor: colour.point,
    borderColor: colour.point,
    pointStyle: row.label.endsWith("FP64") ? "triangle" : "circle",
    pointRadius: 6,
  });
  const decades = (text) =>
    scale(colour, {
      type: "logarithmic",
      title: { display: true, text, color: colour.text },
      ticks: { color: colour.text, maxRotation: 0, callback: decade },
    });
  const settings = common(colour);
  const legend = { display: true, labels: { color: colour.text, usePointStyle: true } };
  return new Chart(canvasAbove(table, NARROW), {
    type: "scatter",
    data: { datasets: [...peaks.map(roof), ...points.map(point)] },
    options: {
      ...settings,
      plugins: { legend },
      scales: {
        x: decades("flop/byte"),
        y: decades("flop/s"),
      },
    },
  });
}

function decade(value) {
  if (Math.abs(Math.log10(value) % 1) > 1e-9) return "";
  return new Intl.NumberFormat("en", { notation: "compact", maximumSignificantDigits: 2 }).format(value);
}

function draw() {
  for (const chart of drawn) {
    const figure = chart.canvas.parentElement;
    chart.destroy();
    figure.remove();
  }
  drawn = [...document.querySelectorAll("table[data-chart]")]
    .map((table) => (table.dataset.chart === "roofline" ? roofline : bars)(table, colours(table)))
    .filter(Boolean);
}

if (window.Chart) {
  draw();
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  // The admin site's own switch between light and dark.
  new MutationObserver(draw).observe(document.documentElement, { attributeFilter: ["data-theme"] });
}
