// Shows pages in headless Chromium, without network, and prints what their tables show as JSON.
// A text is shown if nothing that the page says of it speaks against that (A: visibility, lines,
// boxes, fonts, texts of style sheets), and if each of its characters leaves the ink of its font
// (B: the page is drawn with and without its text, and with nothing but its text).
// usage: node browser.mjs FOLDER        FOLDER has `node_modules`
// A line of stdin is {"file", "mhtml", "charset"}: the saved page, whether it is MHTML, and the
// encoding to take if it states none ("" if it does). A line of stdout is its answer.
import { createHash } from "node:crypto";
import { readFileSync, realpathSync, statSync } from "node:fs";
import { createRequire } from "node:module";
import { basename, dirname, join, resolve, sep } from "node:path";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const HOST = "http://page.invalid/";
const WIDTH = 1280;
const HEIGHT = 900;
const ROOM = 200; // pixels under the page, for what is fixed to the lower edge of a window
const TILE = 4000; // pixels of height that are drawn at once
const SCALE = 2; // a point of 11 pixel type has four pixels then
const LATER_MS = 60_000; // by the clock of the page: what it changes until then is shown
const UNPRINTED = /^(SCRIPT|STYLE|NOSCRIPT|TEMPLATE)$/;
const TITLES = ["alt", "label", "placeholder", "summary", "title"]; // attributes that are printed
const ELSEWHERE = "it is out of its cell";
const SETTLE_MS = 300; // for scripts that write after the page has loaded
const DECISIVE = ["stylesheet", "script", "fetch", "xhr", "document"];

const ANY = ":is(*, #a#a#a#a)"; // outranks the rules of the page that are `!important`
const PARTS = ["", "::before", "::after", "::marker", "::first-letter", "::first-line"];
const ALL = PARTS.map((part) => ANY + part).join();
const CELLS = PARTS.map((part) => `${ANY}:is(td, th, :is(td, th) *)${part}`).join();
// not by `color`, which borders and drawings may have, too
const INVISIBLE = `{ -webkit-text-fill-color: transparent !important;
  -webkit-text-stroke-color: transparent !important; text-shadow: none !important;
  text-emphasis-color: transparent !important; transition: none !important; }`;
const NO_LINES = `${ALL} { text-decoration-color: transparent !important;
  transition: none !important; caret-color: transparent !important; }`;
const NO_TEXT = `${NO_LINES} ${ALL} ${INVISIBLE}`;
const NO_CELLS = `${NO_LINES} ${CELLS} ${INVISIBLE}`;
const LINES = `${NO_TEXT} ${ALL} { text-decoration-color: #f0f !important;
  text-decoration-skip-ink: none !important; }`;
const BARE = `${NO_LINES} ${ALL} { color: #000 !important; -webkit-text-fill-color: #000 !important;
  -webkit-text-stroke-width: 0 !important; text-shadow: none !important;
  background: none !important; box-shadow: none !important; border-color: transparent !important;
  border-image: none !important; outline-color: transparent !important; opacity: 1 !important;
  filter: none !important; mask: none !important; clip-path: none !important;
  mix-blend-mode: normal !important; backdrop-filter: none !important; }
  ${ANY}::before, ${ANY}::after { visibility: hidden !important; }
  ${ANY}::marker { color: transparent !important; }
  :root${ANY} { background: #fff !important; color-scheme: light !important; }
  :is(img, svg, canvas, video, iframe, object, embed, input, #a#a#a#a) { opacity: 0 !important; }`;

/** Notes from now on whether a script changes a table. Runs in the page. */
function watch(options) {
  const note = ({ target, attributeName: name, oldValue }) => {
    // DataTables writes what is so already: that a cell spans one column
    if (name && (target.getAttribute(name) ?? "1") === (oldValue ?? "1")) return;
    const element = target.closest ? target : target.parentElement;
    window.ownMoves ||= Boolean(element?.closest("table"));
  };
  const observer = new MutationObserver((changes) => changes.forEach(note));
  observer.observe(document, { subtree: true, attributeOldValue: true, ...options });
}

/** Opens what scrolls around tables, and ends what moves. Runs in the page. */
function settle() {
  for (const animation of document.getAnimations()) {
    if (animation.playState === "paused") continue;
    try {
      animation.finish();
    } catch {
      animation.pause(); // it has no end
    }
  }
  const scrolls = (node) => /auto|scroll/.test(getComputedStyle(node).overflow);
  for (const table of document.querySelectorAll("table")) {
    for (let node = table; node && node !== document.body; node = node.parentElement) {
      const isCell = /^T[DH]$/.test(node.tagName);
      // a smaller box cannot be scrolled by anybody
      if (isCell || !scrolls(node) || node.clientHeight < 60 || node.clientWidth < 200) continue;
      for (const name of ["max-height", "max-width"])
        node.style.setProperty(name, "none", "important");
      node.style.setProperty("height", "auto", "important");
      node.style.setProperty("overflow", "visible", "important");
    }
  }
  const { scrollWidth, scrollHeight } = document.documentElement;
  const texts = [...document.querySelectorAll("table")].map((table) => table.innerText);
  return { width: scrollWidth, height: scrollHeight, texts };
}

/**
 * Lists cells with the boxes of their characters and what speaks against them. Runs in the page.
 * `absent` are the addresses of files that are not saved with it, `isMoved` says whether scripts
 * keep changing tables, `texts` are those of its tables in a window of usual size.
 */
function collect({ absent, isMoved, texts, elsewhere, unprinted }) {
  const LAYOUT = {
    TD: /^table-cell$/,
    TH: /^table-cell$/,
    TR: /^table-row$/,
    THEAD: /^table-(row|header|footer)-group$/,
    TBODY: /^table-(row|header|footer)-group$/,
    TFOOT: /^table-(row|header|footer)-group$/,
  };
  const UPRIGHT = /^(none|matrix\([\d.]+, 0, 0, [\d.]+, .*\))$/;
  const UNMOVED = /^(none|matrix\(1, 0, 0, 1, 0, 0\))$/;
  const PLAIN = {
    rotate: /^none$/,
    scale: /^none$/,
    translate: /^none$/,
    "offset-path": /^none$/,
    "writing-mode": /^horizontal-tb$/,
    "text-decoration-line": /^(?!.*line-through)/,
    "-webkit-text-security": /^none$/,
    "font-variant-position": /^normal$/,
    "hyphenate-character": /^auto$/, // may be a digit
    "font-variant-numeric": /^(?!.*(ordinal|fractions))/,
    "font-feature-settings":
      /^(?!.*"(?!([tlop]num|kern|liga|calt|clig|rlig|case|zero|cpsp|ss\d\d|cv\d\d)"))/,
  };
  const SYMBOLS = /wingdings|webdings|symbol|dingbats|marlett/i;
  const PAGES = "iframe, object, embed, video"; // what they show is no part of the page
  const PICTURES = `img, image, use, ${PAGES}`;
  const memo = (judge) => {
    const known = new Map();
    return (node) => known.get(node) ?? known.set(node, judge(node)).get(node);
  };

  const drawDigit = (context, digit, font) => {
    context.fillStyle = "#fff";
    context.fillRect(0, 0, 96, 96);
    context.fillStyle = "#000";
    context.font = font;
    context.fillText(digit, 16, 72);
    const { data } = context.getImageData(0, 0, 96, 96);
    const isInk = (x, y) => data[4 * (y * 96 + x)] < 128;
    const inked = [];
    for (let y = 0; y < 96; y++) for (let x = 0; x < 96; x++) if (isInk(x, y)) inked.push([x, y]);
    const [left, top] = [0, 1].map((side) => Math.min(...inked.map((point) => point[side])));
    const [right, bottom] = [0, 1].map((side) => Math.max(...inked.map((point) => point[side])));
    const grid = new Array(12 * 16).fill(0);
    for (const [x, y] of inked) {
      const column = Math.floor(((x - left) * 12) / (right - left + 1));
      const row = Math.floor(((y - top) * 16) / (bottom - top + 1));
      grid[row * 12 + column] += 192 / inked.length;
    }
    return grid;
  };
  /** A web font proves its digits if each looks most like the same one of a plain font. */
  const proves = memo((font) => {
    const context = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
    const digits = [..."0123456789"];
    const plain = ["sans-serif", "serif", "monospace"].flatMap((family) =>
      digits.map((digit) => [digit, drawDigit(context, digit, `64px ${family}`)]),
    );
    const distance = (one, other) =>
      one.reduce((sum, value, at) => sum + (value - other[at]) ** 2, 0);
    return digits.every((digit) => {
      const drawn = drawDigit(context, digit, font);
      const nearest = plain.reduce((best, entry) =>
        distance(entry[1], drawn) < distance(best[1], drawn) ? entry : best,
      );
      return nearest[0] === digit;
    });
  });
  const findFont = memo((node) => {
    const style = getComputedStyle(node);
    if (SYMBOLS.test(style.fontFamily)) return `the font ${style.fontFamily}`;
    const unquote = (name) => name.trim().replace(/^["']|["']$/g, "");
    const families = style.fontFamily.split(",").map(unquote);
    for (const face of document.fonts) {
      const family = unquote(face.family);
      if (!families.includes(family)) continue;
      if (face.status === "error") return `the web font ${family} is not saved with it`;
      const font = `${style.fontStyle} ${style.fontWeight} 64px "${family}"`;
      if (face.status === "loaded" && !proves(font))
        return `the web font ${family} draws other digits`;
    }
    return "";
  });

  /** What draws the texts of an element otherwise than they are written. */
  const findOdd = memo((node) => {
    const style = getComputedStyle(node);
    const inTable = node.tagName in LAYOUT;
    const plain = inTable ? UNMOVED : UPRIGHT;
    if (!plain.test(style.transform)) return `transform: ${style.transform}`;
    for (const [name, plain] of Object.entries(PLAIN)) {
      const value = style.getPropertyValue(name);
      if (!plain.test(value)) return `${name}: ${value}`;
    }
    if (inTable) {
      if (!LAYOUT[node.tagName].test(style.display)) return `display: ${style.display}`;
      const sides = [style.top, style.right, style.bottom, style.left];
      if (style.position === "relative" && sides.some((side) => !/^(auto|0px)$/.test(side)))
        return "position: relative";
    }
    return node.parentElement ? findOdd(node.parentElement) : "";
  });
  const findUnseen = memo((node) => {
    if (!node.checkVisibility()) return "display: none";
    if (!node.checkVisibility({ opacityProperty: true })) return "opacity: 0";
    return node.checkVisibility({ visibilityProperty: true }) ? "" : "visibility: hidden";
  });
  const findClip = memo((node) => {
    if (!node.parentElement || node === document.body) return [-1e9, -1e9, 1e9, 1e9];
    const outer = findClip(node.parentElement);
    const style = getComputedStyle(node);
    if (/^(inline|contents)$/.test(style.display) || style.overflow === "visible") return outer;
    const box = node.getBoundingClientRect();
    return [
      Math.max(outer[0], box.left - 1),
      Math.max(outer[1], box.top - 1),
      Math.min(outer[2], box.right + 1),
      Math.min(outer[3], box.bottom + 1),
    ];
  });
  const findMoving = memo((node) => {
    const isStill = (animation) =>
      animation.playState === "finished" && animation.timeline === document.timeline;
    if (!node.getAnimations().every(isStill)) return "it never stops moving";
    return node.parentElement ? findMoving(node.parentElement) : "";
  });
  /** Whether a cell is not in its row, or not after the cell before it. */
  const isAway = (cell) => {
    const box = cell.getBoundingClientRect();
    const row = cell.parentElement.getBoundingClientRect();
    const before = cell.previousElementSibling?.getBoundingClientRect();
    const isRight = getComputedStyle(cell.closest("table")).direction === "rtl";
    const overlap = isRight ? box.right - before?.left : before?.right - box.left;
    return Math.abs(box.top - row.top) > 3 || (before?.width > 0 && overlap > 3);
  };
  /** A style sheet may print a cell in a row, or put the row elsewhere. */
  const findRowFault = (row, above) => {
    const styles = ["::before", "::after"].map((part) => getComputedStyle(row, part));
    const isCell = ({ content, position }) =>
      !/^(none|normal|)$/.test(content) && !/absolute|fixed/.test(position);
    if (styles.some(isCell)) return "a style sheet prints a cell";
    return row.getBoundingClientRect().top < above ? "its row is above those before it" : "";
  };

  /** A picture in a cell that is not saved with the page, or a page of its own. */
  const findAbsent = (cell) => {
    for (const node of [cell, ...cell.querySelectorAll("*")]) {
      if (findUnseen(node)) continue;
      const { backgroundImage } = getComputedStyle(node);
      const address = node.currentSrc || node.src || node.data || node.href?.baseVal || "";
      const isAbsent = (url) => absent.some((own) => backgroundImage.includes(own) || url === own);
      if (node.matches(PAGES) || (node.matches(PICTURES) && isAbsent(address)))
        return `there is a <${node.tagName.toLowerCase()}>`;
      if (isAbsent("")) return "its picture is not saved with the page";
    }
    return "";
  };

  const readCell = (cell, isHeader) => {
    const style = getComputedStyle(cell);
    const moving = findMoving(cell);
    // what has no box may be displayed all the same
    if (!moving && style.display !== "contents" && !cell.checkVisibility()) return null;
    const isOut = isAway(cell);
    const box = cell.getBoundingClientRect();
    const nodes = [];
    let why = moving || (isOut ? elsewhere : findOdd(cell));
    if (cell.querySelector("table")) why ||= "a table is in it";
    const walker = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT);
    const range = document.createRange();
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
      const parent = node.parentElement;
      const isNested = parent.closest("td, th") !== cell;
      if (!node.data.trim() || unprinted.test(parent.tagName) || isNested) continue;
      const hidden = findUnseen(parent);
      why ||= findMoving(parent);
      if (!hidden) why ||= findOdd(parent) || findFont(parent);
      const clip = findClip(parent);
      const chars = [];
      let at = 0;
      for (const char of node.data) {
        range.setStart(node, at);
        range.setEnd(node, (at += char.length));
        if (!char.trim()) continue;
        const rect = [...range.getClientRects()].at(-1);
        if (!rect || (rect.width === 0 && /\p{Cf}/u.test(char))) continue;
        const x = rect.x + rect.width / 2;
        const y = rect.y + rect.height / 2;
        const isIn = ([left, top, right, bottom]) => x > left && x < right && y > top && y < bottom;
        const isCut = !isIn(clip) || rect.width === 0 || rect.height <= 3;
        const isOwn = !isOut && isIn([box.left - 2, box.top - 2, box.right + 2, box.bottom + 2]);
        const fault = hidden || (isCut ? "a box cuts it off" : isOwn ? "" : elsewhere);
        chars.push([char, rect.x + scrollX, rect.y + scrollY, rect.width, rect.height, fault]);
      }
      nodes.push({ text: node.data, chars, hidden });
    }
    const text = cell.textContent;
    const isName = /\p{L}/u.test(text) && !/\p{N}/u.test(text); // it may have a picture
    const isStrict = isHeader || !isName;
    if (isStrict) why ||= findAbsent(cell);
    // it is drawn where the lines between cells are, of which nothing is said
    if (style.borderImageSource !== "none") why ||= "its border is a picture";
    const [top, right, bottom, left] = ["Top", "Right", "Bottom", "Left"].map((side) =>
      Math.ceil(parseFloat(style[`border${side}Width`]) + 0.5),
    );
    const [wide, high] = [box.width - left - right, box.height - top - bottom];
    const inner = [box.x + scrollX + left, box.y + scrollY + top, wide, high];
    return { nodes, why, inner, isStrict, isHeader };
  };

  const listCells = (page) =>
    [...page.querySelectorAll("table")].map((table) =>
      [...table.querySelectorAll("tr")]
        .filter((row) => row.closest("table") === table)
        .map((row) => [...row.children].filter((cell) => cell.matches("td, th"))),
    );
  const tables = listCells(document).map((rows, t) => {
    const table = document.querySelectorAll("table")[t];
    const isSame = !isMoved && table.innerText === texts[t];
    let above = -Infinity;
    return rows.map((cells, r) => {
      const row = cells[0]?.parentElement;
      const fault = row ? findRowFault(row, above) : "";
      if (row?.getClientRects().length) above = row.getBoundingClientRect().top;
      return cells.map((cell, c) => {
        const read = readCell(cell, r === 0 || cell.tagName === "TH");
        if (read && !isSame) read.why ||= "it changes with time or with the window";
        if (read) read.why ||= fault;
        return read;
      });
    });
  });
  const links = [...document.querySelectorAll("link[rel~=stylesheet i]")];
  const missing = links.filter((link) => !link.sheet && !link.disabled);
  return { tables, missing: missing.map((link) => link.getAttribute("href")) };
}

/**
 * Lists the texts of a page that are no text of a cell, whether they are displayed or not: also
 * those of style sheets, fields, frames and shadow trees. `around` are the texts, `inside` those
 * that are laid out in a cell, each with its box.
 */
async function listTexts(context, page) {
  const session = await context.newCDPSession(page);
  const options = { computedStyles: [] };
  const { documents, strings } = await session.send("DOMSnapshot.captureSnapshot", options);
  await session.detach();
  const around = [];
  const inside = [];
  documents.forEach(({ nodes, layout }, frame) => {
    const shadow = new Set(nodes.shadowRootType.index);
    const names = nodes.nodeName.map((name) => strings[name].toUpperCase());
    const places = []; // of each node in a table: that of its parent, or its own
    nodes.parentIndex.forEach((parent, node) => {
      const place = places[parent] ?? "";
      const isLight = frame === 0 && !shadow.has(node);
      places[node] = isLight ? enter(place, names[node]) : place;
      const isOwn = places[node] === "CELL" && isLight;
      const isText = nodes.nodeType[node] === 3 && !UNPRINTED.test(names[parent]);
      if (isText && !isOwn) around.push(strings[nodes.nodeValue[node]]);
      const attributes = nodes.attributes[node];
      for (let at = 0; at < attributes.length; at += 2)
        if (TITLES.includes(strings[attributes[at]])) around.push(strings[attributes[at + 1]]);
    });
    for (const { value } of [nodes.inputValue, nodes.textValue])
      around.push(...value.map((text) => strings[text]));
    const parts = new Set(nodes.pseudoType.index);
    layout.nodeIndex.forEach((node, at) => {
      if (layout.text[at] < 0 || !(parts.has(node) || shadow.has(node))) return;
      const text = strings[layout.text[at]];
      around.push(text);
      if (frame === 0 && places[node] === "CELL") inside.push([text, ...layout.bounds[at]]);
    });
  });
  const texts = around.map((text) => text?.trim()).filter(Boolean);
  return { around: [...new Set(texts)], inside };
}

/** Returns where a node is in a table, "" if it is in none, by its name and where its parent is. */
function enter(place, name) {
  if (place === "CELL" || (place === "ROW" && /^T[DH]$/.test(name))) return "CELL";
  if (name === "TABLE" || place) return name === "TR" ? "ROW" : "TABLE";
  return "";
}

/**
 * Judges the characters of cells by pictures of a part of the page; `inside` are texts in cells
 * that are none of theirs, each with its box. Runs in an empty page.
 */
async function judgeInk({ pictures, cells, inside, top, scale, elsewhere }) {
  const CONTRAST = 48; // of 255: what a reader sees at a glance
  const SLACK = 3; // pixels around a character that its ink may take
  const STRAY = 24; // pixels of ink that glyphs leave outside of their boxes
  const ARROWS = /^[\s▲▼△▽▴▾↑↓↕⇅⇵⬍]*$/u; // those for sorting
  const DRAWN = 3; // pixels of a cell that have another colour than the rest, without its text
  const load = async (text) => {
    const bytes = Uint8Array.from(atob(text), (char) => char.charCodeAt(0));
    const image = await createImageBitmap(new Blob([bytes], { type: "image/png" }));
    const canvas = new OffscreenCanvas(image.width, image.height);
    const context = canvas.getContext("2d", { willReadFrequently: true });
    context.drawImage(image, 0, 0);
    const { data } = context.getImageData(0, 0, image.width, image.height);
    return { width: image.width, height: image.height, data, whole: new Uint32Array(data.buffer) };
  };
  const [text, none, lines, bare, foreign] = await Promise.all(pictures.map(load));
  const width = Math.min(text.width, none.width, lines.width, bare.width);
  const height = Math.min(text.height, none.height, lines.height, bare.height);
  const place = (x, y, wide, high, slack = 0) => [
    Math.max(0, Math.floor((x - slack) * scale)),
    Math.max(0, Math.floor((y - top - slack) * scale)),
    Math.min(width, Math.ceil((x + wide + slack) * scale)),
    Math.min(height, Math.ceil((y - top + high + slack) * scale)),
  ];
  const differ = (one, other, x, y) => {
    if (other && one.whole[y * one.width + x] === other.whole[y * other.width + x]) return 0;
    let most = 0;
    for (let channel = 0; channel < 3; channel++) {
      const own = one.data[4 * (y * one.width + x) + channel];
      const base = other ? other.data[4 * (y * other.width + x) + channel] : 255;
      most = Math.max(most, Math.abs(own - base));
    }
    return most;
  };
  const list = ([x0, y0, x1, y1], test) => {
    const found = [];
    for (let y = y0; y < y1; y++) for (let x = x0; x < x1; x++) if (test(x, y)) found.push([x, y]);
    return found;
  };
  const isFar = (one, other) => (x, y) => differ(one, other, x, y) >= CONTRAST;
  const measureInk = (one, other, box) => {
    let most = 0;
    const differences = list(box, () => true).map(([x, y]) => differ(one, other, x, y));
    for (const difference of differences) most = Math.max(most, difference);
    return { most, count: differences.filter((value) => value > 0 && value >= most / 2).length };
  };
  /** Lists the pixels of a place that have not its usual colour. */
  const findOdd = (picture, box) => {
    const read = (x, y) => picture.whole[y * picture.width + x];
    const counts = new Map();
    list(box, (x, y) => {
      const colour = read(x, y);
      counts.set(colour, (counts.get(colour) ?? 0) + 1);
    });
    if (counts.size < 2) return [];
    const [usual] = [...counts].reduce((best, entry) => (entry[1] > best[1] ? entry : best));
    const channels = (colour) => [16, 8, 0].map((bits) => (colour >> bits) & 255);
    const isOdd = (colour) =>
      channels(colour).some((value, at) => Math.abs(value - channels(usual)[at]) >= CONTRAST);
    const odd = new Set([...counts.keys()].filter(isOdd));
    return list(box, (x, y) => odd.has(read(x, y)));
  };
  /** A bar or a highlight: a full box, too high for a line or point, too wide for a digit 1. */
  const isBar = (odd, high) => {
    const span = (side) => {
      const places = new Set(odd.map((point) => point[side]));
      return Math.max(...places) - Math.min(...places) + 1;
    };
    const [wide, tall] = [span(0), span(1)];
    const isFull = odd.length >= 0.9 * wide * tall;
    return isFull && tall >= 0.8 * high * scale && wide >= 0.6 * high * scale;
  };
  const judgeChar = ([, x, y, wide, high, fault], hasBar) => {
    if (fault) return fault;
    const box = place(x, y, wide, high);
    const own = measureInk(text, none, box);
    if (own.most < CONTRAST) return "it is covered, or has the colour behind it";
    const expected = measureInk(bare, null, box);
    const isOdd = own.count < 0.6 * expected.count || own.count > 1.7 * expected.count;
    if (isOdd && Math.abs(own.count - expected.count) > 8) return "a part is covered or added";
    const middle = place(x + 0.2 * wide, y + 0.25 * high, 0.6 * wide, 0.5 * high);
    const behind = hasBar ? [] : findOdd(none, middle);
    const odd = behind.length + list(middle, isFar(lines, none)).length;
    const area = (middle[2] - middle[0]) * (middle[3] - middle[1]);
    return odd > 0.04 * area ? "a line or picture is behind it" : "";
  };
  const isOn = ([, x, y, wide, high], [left, top, width, height]) =>
    Math.min(x + wide, left + width) - Math.max(x, left) > 1 &&
    Math.min(y + high, top + height) - Math.max(y, top) > 1;
  const charsOf = (cell) => cell.nodes.flatMap((node) => node.chars);
  const isShown = ([, , , , , fault]) => !fault || fault === elsewhere;
  const shown = cells.flatMap((cell) => charsOf(cell).filter(isShown));
  return cells.map((cell) => {
    const box = place(...cell.inner);
    const chars = new Set(charsOf(cell));
    const isOther = (text) => !chars.has(text) && isOn(text, cell.inner);
    const on = [...inside, ...shown].filter(isOther);
    const isArrow = ([text]) => ARROWS.test(text);
    const other = on.find((text) => !isArrow(text));
    if (other) cell.why ||= `there is another text: ${JSON.stringify(other[0])}`;
    if (list(box, isFar(foreign, none)).length > DRAWN) cell.why ||= "another text is on it";
    const arrows = cell.isHeader ? on.filter(isArrow) : [];
    const own = [...[...chars].filter((char) => !char[5]), ...arrows];
    const taken = own.map(([, ...sides]) => place(...sides.slice(0, 4), SLACK));
    const isTaken = ([x, y]) =>
      taken.some((box) => x >= box[0] && x < box[2] && y >= box[1] && y < box[3]);
    const stray = list(box, isFar(text, none)).filter((point) => !isTaken(point));
    if (stray.length > STRAY) cell.why ||= "there is ink that is not its text";
    const odd = findOdd(none, box);
    const hasBar = isBar(odd, own[0]?.[4] ?? 16);
    if (cell.isStrict && odd.length > DRAWN && !hasBar) cell.why ||= "there is a drawing";
    for (const char of chars) char[5] = judgeChar(char, hasBar);
    return cell;
  });
}

/** Returns the text of characters as they stand: raised and lowered ones are in ^{} and _{}. */
function composeText(chars) {
  const lines = [];
  let fault = "";
  let before = null;
  for (const char of chars) {
    const [, x, y, width, height] = char;
    const overlap = before && Math.min(before[2] + before[4], y + height) - Math.max(before[2], y);
    if (before && overlap > 0.4 * Math.min(before[4], height)) {
      const gap = x - before[1] - before[3];
      if (gap < -0.4 * Math.min(before[3], width)) fault ||= "its characters are in another order";
      lines.at(-1).push({ char, gap: gap > 0.12 * Math.max(height, before[4]) });
    } else {
      const isAbove = before && y + height / 2 < before[2] + before[4] / 2;
      if (isAbove) fault ||= "its lines are in another order";
      lines.push([{ char, gap: false }]);
    }
    before = char;
  }
  const texts = lines.map((line) => {
    const heighten = (best, { char }) => (char[4] > best[4] + 0.5 ? char : best);
    const base = line.reduce(heighten, line[0].char);
    let text = "";
    let level = "";
    for (const { char, gap } of line) {
      const rise = (base[2] + base[4] - char[2] - char[4]) / base[4];
      const next = rise > 0.12 ? "^" : rise < -0.08 ? "_" : "";
      if (next !== level && level) text += "}";
      if (gap) text += " ";
      if (next !== level && next) text += `${next}{`;
      text += char[0];
      level = next;
    }
    return level ? `${text}}` : text;
  });
  return { text: texts.join(" "), fault };
}

/** Returns what is stored of a cell: its text if that is all, null if it has no place. */
function summarise(cell) {
  if (cell === null) return null;
  const hidden = [];
  const shown = [];
  let why = cell.why;
  for (const node of cell.nodes) {
    const { text, chars } = node;
    const faults = chars.filter((char) => char[5]);
    if (faults.length === chars.length) {
      hidden.push([text, faults[0]?.[5] || node.hidden || "it has no width"]);
      continue;
    }
    if (faults.length) why ||= faults[0][5];
    shown.push(...chars);
  }
  const { text, fault } = composeText(shown);
  why ||= fault;
  return why || hidden.length ? { text, why, hidden } : text;
}

async function openBrowser(folder) {
  const require = createRequire(join(folder, "package.json"));
  const { chromium } = require("playwright-core");
  let executablePath = process.env.CHROMIUM;
  if (!executablePath) {
    const packaged = await import(pathToFileURL(require.resolve("@sparticuz/chromium")));
    executablePath = await packaged.default.executablePath();
  }
  // no name and no address of another machine is reached, whatever a page asks for
  const args = ["--proxy-server=http://127.0.0.1:9", "--proxy-bypass-list=<-loopback>"];
  // a page shows what it shows to people
  args.push("--force-color-profile=srgb", "--disable-blink-features=AutomationControlled");
  const chromiumSandbox = process.getuid?.() !== 0 && !process.env.CHROMIUM_NO_SANDBOX;
  return chromium.launch({ executablePath, args, chromiumSandbox });
}

/** Gives the page the files that are saved beside it; what is not there is listed. */
async function serve(context, request, address, files, missing) {
  const folder = realpathSync(dirname(request.file));
  const find = (url) => {
    if (url.host !== new URL(HOST).host) return null;
    try {
      const path = realpathSync(resolve(folder, `.${decodeURIComponent(url.pathname)}`));
      return path.startsWith(folder + sep) && statSync(path).isFile() ? path : null;
    } catch {
      return null;
    }
  };
  await context.route("**/*", (route) => {
    const url = new URL(route.request().url());
    if (url.href === address) {
      if (request.mhtml) return route.continue();
      const contentType = `text/html${request.charset ? `; charset=${request.charset}` : ""}`;
      return route.fulfill({ body: readFileSync(request.file), contentType });
    }
    const path = find(url);
    if (path === null) {
      missing.push({ type: route.request().resourceType(), address: url.href });
      return route.abort();
    }
    const digest = createHash("sha256").update(readFileSync(path)).digest("hex");
    files[path.slice(folder.length + 1)] = digest;
    return route.fulfill({ path });
  });
}

async function draw(page, sheet, clip) {
  await page.evaluate((text) => {
    const own = new CSSStyleSheet();
    own.replaceSync(text);
    window.ownSheets ??= [...document.adoptedStyleSheets];
    document.adoptedStyleSheets = [...window.ownSheets, own];
  }, sheet);
  const options = { clip, fullPage: true, animations: "allow", scale: "device" };
  return (await page.screenshot(options)).toString("base64");
}

async function judgeByInk(context, page, tables, inside, size) {
  const judge = await context.newPage();
  const cells = tables.flat(2).filter((cell) => cell !== null);
  // what is above or below the page is judged with its first or last part, in which it has no ink
  const findTop = (cell) => Math.min(Math.max(0, cell.inner[1]), size.height - 1);
  for (let top = 0; top < size.height; top += TILE) {
    const here = cells.filter((cell) => findTop(cell) >= top && findTop(cell) < top + TILE);
    if (here.length === 0) continue;
    const lowest = Math.max(top, ...here.map((cell) => cell.inner[1] + cell.inner[3]));
    const height = Math.min(size.height, Math.ceil(lowest) + 20) - top;
    const clip = { x: 0, y: top, width: size.width, height };
    const pictures = [];
    for (const sheet of [NO_LINES, NO_TEXT, LINES, BARE, NO_CELLS])
      pictures.push(await draw(page, sheet, clip));
    const asked = { pictures, cells: here, inside, top, scale: SCALE, elsewhere: ELSEWHERE };
    const judged = await judge.evaluate(judgeInk, asked);
    judged.forEach((cell, at) => Object.assign(here[at], cell));
  }
}

async function show(browser, request) {
  const { href } = pathToFileURL(request.file);
  const address = request.mhtml ? href : HOST + encodeURIComponent(basename(request.file));
  const viewport = { width: WIDTH, height: HEIGHT };
  const context = await browser.newContext({ viewport, deviceScaleFactor: SCALE });
  try {
    const files = {};
    const missing = [];
    await serve(context, request, address, files, missing);
    const page = await context.newPage();
    let hasWorker = false; // it has a clock of its own, and may write at any time
    page.on("worker", () => (hasWorker = true));
    await page.addInitScript(watch, { attributeFilter: ["colspan", "rowspan"] });
    await page.clock.install();
    await page.goto(address, { waitUntil: "load" });
    await page.waitForTimeout(SETTLE_MS);
    const fonts = page.evaluate(() => document.fonts.ready.then(() => null));
    await Promise.race([fonts, page.waitForTimeout(10 * SETTLE_MS)]);
    await page.clock.runFor(LATER_MS);
    for (const top of [1e9, 0]) {
      await page.evaluate((y) => scrollTo(0, y), top);
      await page.waitForTimeout(SETTLE_MS / 3);
    }
    const { texts, ...size } = await page.evaluate(settle);
    await page.evaluate(watch, { childList: true, characterData: true });
    await page.clock.runFor(LATER_MS);
    const isMoved = (await page.evaluate(() => window.ownMoves ?? false)) || hasWorker;
    size.width = Math.max(size.width, WIDTH);
    const high = Math.max(HEIGHT, Math.min(size.height, TILE) + ROOM);
    await page.setViewportSize({ width: size.width, height: high });
    await page.waitForTimeout(SETTLE_MS / 3);
    const absent = missing.map((own) => own.address);
    const words = { elsewhere: ELSEWHERE, unprinted: UNPRINTED };
    const asked = { absent, isMoved, texts, ...words };
    const { tables, missing: unlinked } = await page.evaluate(collect, asked);
    const { around, inside } = await listTexts(context, page);
    const decisive = missing.filter((own) => DECISIVE.includes(own.type));
    const unread = decisive.map((own) => own.address.replace(HOST, ""));
    size.height = await page.evaluate(() => document.documentElement.scrollHeight);
    await judgeByInk(context, page, tables, inside, size);
    return {
      browser: `Chromium ${browser.version()}`,
      files,
      missing: [...new Set([...unread, ...unlinked])].sort(),
      moved: page.url() === address ? "" : page.url(),
      around,
      tables: tables.map((table) => table.map((row) => row.map(summarise))),
    };
  } finally {
    await context.close();
  }
}

const browser = await openBrowser(process.argv[2]);
for await (const line of createInterface({ input: process.stdin })) {
  const fail = (error) => ({ error: error.message.split("\n")[0] });
  console.log(JSON.stringify(await show(browser, JSON.parse(line)).catch(fail)));
}
await browser.close();
