// The pages work without this. It keeps times and lists fresh, and puts the keyboard to use.
"use strict";

const body = document.body;
const one = (selector, from = document) => from.querySelector(selector);
const all = (selector, from = document) => [...from.querySelectorAll(selector)];

// Times ----------------------------------------------------------------------------------------------------------

const UNITS = [["d", 86400], ["h", 3600], ["min", 60]];

function span(seconds) {
  seconds = Math.max(Math.round(seconds), 0);
  for (const [unit, size] of UNITS) {
    if (seconds >= 2 * size - Math.floor(size / 60)) return `${Math.floor(seconds / size)} ${unit}`;
  }
  return `${seconds} s`;
}

function tick() {
  for (const time of all("time")) {
    const at = Date.parse(time.dateTime) / 1000;
    const left = at - Date.now() / 1000;
    const { ago, age, until, clock } = time.dataset;
    if (ago !== undefined) time.textContent = left > -2 ? "just now" : `${span(-left)} ago`;
    else if (age !== undefined) time.textContent = span(-left);
    else if (until !== undefined) {
      time.textContent = left > 0 ? span(left) : "over";
      time.classList.toggle("soon", left > 0 && left < 120);
      time.classList.toggle("over", left <= 0);
    } else if (clock !== undefined) time.textContent = new Date(at * 1000).toLocaleString();
  }
}

// Fresh content --------------------------------------------------------------------------------------------------

const written = () => all("#fresh textarea, #fresh input:not([type=hidden])").some((field) =>
  field.type === "checkbox" || field.type === "radio" ? field.checked !== field.defaultChecked
    : field.value !== field.defaultValue);

let refreshing = false;
let again = false;

async function refresh() {
  if (refreshing) { again = true; return; }
  refreshing = true;
  try {
    const reply = await fetch(location.href, { headers: { accept: "text/html" } });
    if (reply.redirected && new URL(reply.url).pathname.endsWith("/sign-in")) { location.reload(); return; }
    if (!reply.ok) return;
    const page = new DOMParser().parseFromString(await reply.text(), "text/html");
    take(page);
  } catch { /* the stream comes back and asks again */ } finally {
    refreshing = false;
    if (again) { again = false; setTimeout(refresh, 250); }
  }
}

function take(page) {
  const [old, fresh] = [one("#fresh"), one("#fresh", page)];
  if (!old || !fresh) return;
  const count = one("#open-count", page);
  if (count && one("#open-count")) one("#open-count").textContent = count.textContent;
  document.title = page.title;
  if (old.dataset.version === fresh.dataset.version) return; // what is being read or written stays as it is
  const known = new Set(all(".row", old).map((row) => row.dataset.id));
  const picked = new Set(picks().filter((box) => box.checked).map((box) => box.value));
  const held = document.activeElement?.closest?.(".row")?.dataset.id;
  const lost = one("#decide", old) && written();
  fresh.remove();
  old.replaceWith(document.adoptNode(fresh));
  for (const row of all(".row", fresh)) if (known.size && !known.has(row.dataset.id)) row.classList.add("arrived");
  for (const box of picks()) box.checked = picked.has(box.value);
  if (held) one(`.row[data-id="${CSS.escape(held)}"] .what`)?.focus();
  if (one("#end", fresh)) tell(lost);
  ready();
}

function tell(lost) {
  const said = document.createElement("p");
  said.className = "banner good";
  said.setAttribute("role", "status");
  const end = one("#end h2").textContent.trim();
  said.textContent = `${end}, while you looked.${lost ? " What you had written was not sent." : ""}`;
  one(".columns").before(said);
}

// The stream -----------------------------------------------------------------------------------------------------

let stream = null;
let pause = 500;

function listen() {
  const at = body.dataset.live;
  if (!at || !one("#live")) return;
  stream = new EventSource(at);
  stream.addEventListener("hello", () => { pause = 500; show(true); refresh(); });
  stream.addEventListener("changed", refresh);
  stream.addEventListener("over", () => location.reload());
  stream.onerror = () => {
    if (one("#end")) { stream.close(); one("#live").hidden = true; return; }
    show(false);
    stream.close(); // browsers give up at some refusals: this does not
    setTimeout(listen, pause * (0.5 + Math.random() / 2));
    pause = Math.min(pause * 2, 5000);
  };
}

function show(is) {
  const mark = one("#live");
  mark.hidden = false;
  mark.classList.toggle("lost", !is);
  mark.textContent = is ? "live" : "reconnecting";
}

// Selecting ------------------------------------------------------------------------------------------------------

const picks = () => all("#picks input[name=pick]");

function count() {
  const chosen = picks().filter((box) => box.checked).length;
  for (const box of picks()) box.closest(".row").classList.toggle("picked", box.checked);
  const bar = one("#bar");
  if (!bar) return;
  bar.hidden = !chosen;
  one("#picked").textContent = `${chosen} selected`;
}

// The keyboard ---------------------------------------------------------------------------------------------------

const rows = () => all(".row .what");

function step(by) {
  const list = rows();
  if (!list.length) return;
  const at = list.findIndex((link) => link.closest(".row") === document.activeElement?.closest?.(".row"));
  const next = at < 0 ? (by > 0 ? 0 : list.length - 1) : Math.min(Math.max(at + by, 0), list.length - 1);
  list[next].focus();
}

function press(key) {
  const found = all(`[data-key="${key}"]`).find((item) => item.offsetParent !== null);
  if (!found) return false;
  if (found.tagName === "A") found.click();
  else if (found.tagName === "SUMMARY") {
    found.parentElement.open = true;
    one("textarea, input:not([type=hidden]), select", found.parentElement).focus();
  } else if (key === "p") one("input:not([type=hidden]), select, textarea", found.form).focus();
  else found.focus(); // a decision takes a second key: Enter
  return true;
}

const KEYS = {
  j: () => step(1), k: () => step(-1), ArrowDown: () => rows().length && step(1), ArrowUp: () => rows().length && step(-1),
  x: () => document.activeElement?.closest?.(".row")?.querySelector("input")?.click(),
  "/": () => one("#filters input")?.focus(),
  u: () => body.dataset.back && location.assign(body.dataset.back),
  n: () => body.dataset.next && location.assign(body.dataset.next),
  "?": () => one("#keys")?.showModal(),
};

document.addEventListener("keydown", (event) => {
  const field = event.target.closest?.("textarea, select, input:not([type=checkbox], [type=radio])");
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && event.target.form) {
    const button = one("button.primary, button.dangerous, button", event.target.form);
    event.preventDefault();
    event.target.form.requestSubmit(button);
    return;
  }
  if (field) { if (event.key === "Escape") field.blur(); return; }
  if (event.ctrlKey || event.metaKey || event.altKey || one("dialog[open]")) return;
  const act = KEYS[event.key];
  if (act) { event.preventDefault(); act(); } else if (press(event.key)) event.preventDefault();
});

document.addEventListener("change", (event) => {
  if (event.target.name === "pick") count();
  else if (event.target.form?.id === "filters") event.target.form.requestSubmit();
});

document.addEventListener("submit", (event) => {
  // An answer is sent once; sent twice it would be the same answer, told twice.
  if (event.target.method === "post") setTimeout(() => all("button", event.target).forEach((b) => { b.disabled = true; }));
  // Fields that ask for nothing need not stand in the address.
  if (event.target.id === "filters") all("input, select", event.target).forEach((f) => { f.disabled = !f.value; });
});
addEventListener("pageshow", (event) => { if (event.persisted) location.reload(); });

async function converse(event) {
  event.preventDefault();
  try {
    const reply = await fetch(event.currentTarget.href);
    const page = new DOMParser().parseFromString(await reply.text(), "text/html");
    one("#conversation").replaceWith(document.adoptNode(one("#conversation", page)));
    tick();
  } catch { location.assign(one("#show-conversation").href); }
}

function ready() {
  for (const item of all(".needs-script")) item.hidden = false;
  one("#show-conversation")?.addEventListener("click", converse);
  count();
  tick();
}

one("#show-keys")?.addEventListener("click", () => one("#keys").showModal());
ready();
setInterval(tick, 1000);
listen();
