// A mechanism that can be turned around, moved by sliders, or seen in motion.  `link_poses(q, out)` is its forward
// kinematics, written by linkwise for this one mechanism; `data` is what viewer/pages/contents.py has put together.
"use strict";

const FIELD_OF_VIEW = (35 * Math.PI) / 180;
const FILLED = 0.88; // of the picture, by what is in it
const SPEEDS = [0.1, 0.25, 0.5, 1, 2, 5];

const element = (tag, properties = {}, ...children) => {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
};

// A number with its unit: angles in degrees, with radians beside them.
const told = (value, unit) =>
  unit === "rad" ? `${degrees(value)} (${value.toFixed(3)} rad)` : `${value.toFixed(3)} ${unit}`.trim();
const degrees = (value) => `${((value * 180) / Math.PI).toFixed(1)}\u00b0`;

// -- numbers ------------------------------------------------------------------------------------------------------

async function inflated(base64) {
  const packed = Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  return (await new Response(stream).arrayBuffer());
}

// Configurations at even times: rounded to steps, twice differenced, the four bytes of each number apart.
class Motion {
  constructor(about, bytes, quaternions) {
    Object.assign(this, about); // frames, start, end, steps, columns, members, label
    this.quaternions = quaternions;
    const { frames, columns } = this, total = frames * columns * this.members;
    const planes = new Uint8Array(bytes, about.offset, 4 * total);
    this.values = new Float64Array(total);
    for (let series = 0; series < columns * this.members; series++) {
      let rate = 0, value = 0;
      for (let frame = 0; frame < frames; frame++) {
        const k = series * frames + frame;
        rate += planes[k] | (planes[total + k] << 8) | (planes[2 * total + k] << 16) | (planes[3 * total + k] << 24);
        value += rate;
        this.values[k] = value * this.steps[series];
      }
    }
  }

  // q of one member at a time: between two frames, quaternions of unit length.
  at(time, member) {
    const { frames, columns, start, end } = this, q = new Float64Array(columns);
    const place = end > start ? ((time - start) / (end - start)) * (frames - 1) : 0;
    const before = Math.min(Math.max(Math.floor(place), 0), Math.max(frames - 2, 0));
    const share = Math.min(Math.max(place - before, 0), 1), next = Math.min(before + 1, frames - 1);
    for (let column = 0; column < columns; column++) {
      const first = (member * columns + column) * frames;
      q[column] = this.values[first + before] + share * (this.values[first + next] - this.values[first + before]);
    }
    for (const at of this.quaternions) {
      const length = Math.hypot(q[at], q[at + 1], q[at + 2], q[at + 3]) || 1;
      for (let k = 0; k < 4; k++) q[at + k] /= length;
    }
    return q;
  }

  series(column, member) {
    const first = (member * this.columns + column) * this.frames;
    return this.values.subarray(first, first + this.frames);
  }
}

// -- the camera ---------------------------------------------------------------------------------------------------

class Camera {
  constructor(box, up, toward) {
    this.up = up;
    const other = Math.abs(up[0]) > 0.9 ? [0, 1, 0] : [1, 0, 0];
    this.first = unit(subtract(other, scaled(up, dot(other, up))));
    this.second = cross(up, this.first);
    this.corners = Array.from({ length: 8 }, (_, k) => [0, 1, 2].map((axis) => box[(k >> axis) & 1][axis]));
    this.target = scaled(add(...box), 0.5);
    this.size = Math.max(Math.hypot(...subtract(box[1], box[0])), 1e-6);
    this.azimuth = Math.atan2(dot(toward, this.second), dot(toward, this.first));
    this.elevation = Math.asin(Math.min(Math.max(dot(unit(toward), up), -1), 1));
    this.distance = this.size;
    this.touched = false; // nobody has moved it
  }

  // Go to where all of the box is just seen within the free part of the picture, which has the given width and height
  // in units of the picture's height.  A point at (x, y, z) to the right, above and towards the camera is seen from a
  // distance d if |x - c| < t (d - z): the largest x + t z and the smallest x - t z tell c and d.
  fit(width, height) {
    const right = unit(cross(this.up, this.toward)), above = cross(this.toward, right), middle = scaled(add(this.corners[0], this.corners[7]), 0.5);
    const half = FILLED * Math.tan(FIELD_OF_VIEW / 2), z = this.corners.map((corner) => dot(subtract(corner, middle), this.toward));
    this.target = middle;
    this.distance = Math.max(1.5 * Math.max(...z), 1e-6);
    for (const [way, tangent] of [[right, half * width], [above, half * height]]) {
      const x = this.corners.map((corner) => dot(subtract(corner, middle), way));
      const high = Math.max(...x.map((value, k) => value + tangent * z[k])), low = Math.min(...x.map((value, k) => value - tangent * z[k]));
      this.target = add(this.target, scaled(way, (high + low) / 2));
      this.distance = Math.max(this.distance, (high - low) / 2 / tangent);
    }
  }

  // moved: what is followed has gone so far; free: the part of the picture that nothing covers, left, right, bottom and
  // top from -1 to 1.
  look(aspect, moved, free) {
    const level = add(scaled(this.first, Math.cos(this.azimuth)), scaled(this.second, Math.sin(this.azimuth)));
    this.toward = add(scaled(level, Math.cos(this.elevation)), scaled(this.up, Math.sin(this.elevation)));
    if (!this.touched) this.fit(((free[1] - free[0]) / 2) * aspect, (free[3] - free[2]) / 2);
    const far = this.distance, target = add(this.target, moved);
    this.view = lookAt(add(target, scaled(this.toward, far)), target, this.up);
    const projection = perspective(FIELD_OF_VIEW, aspect, 0.01 * far, 10 * far + 10 * this.size);
    projection[8] = -(free[0] + free[1]) / 2; // the target is in the middle of what is free
    projection[9] = -(free[2] + free[3]) / 2;
    this.seen = product(projection, this.view);
  }

  turn(dx, dy) {
    this.touched = true;
    this.azimuth -= 0.008 * dx;
    this.elevation = Math.min(Math.max(this.elevation + 0.008 * dy, -1.55), 1.55);
  }

  pan(dx, dy, height) {
    this.touched = true;
    const metres = (2 * this.distance * Math.tan(FIELD_OF_VIEW / 2)) / height, view = this.view;
    const right = [view[0], view[4], view[8]], above = [view[1], view[5], view[9]];
    this.target = add(this.target, add(scaled(right, -dx * metres), scaled(above, dy * metres)));
  }

  zoom(factor) {
    this.touched = true;
    this.distance = Math.min(Math.max(this.distance * factor, 0.02 * this.size), 50 * this.size);
  }
}

// -- the page -----------------------------------------------------------------------------------------------------

class Player {
  constructor(root, data, bytes) {
    this.data = data;
    this.root = root;
    this.canvas = element("canvas", { className: "picture" });
    this.tip = element("div", { className: "tip" });
    this.names = data.labels.map(({ name }) => element("div", { className: "label", textContent: name }));
    this.named = true;
    root.append(this.canvas, ...this.names, this.tip);
    this.renderer = new Renderer(this.canvas);
    this.camera = new Camera(data.box, data.up, data.toward);
    this.poses = new Float64Array(16 * data.links.length);
    this.motion = data.motion && new Motion(data.motion, bytes, data.quaternions);
    this.q = this.motion ? this.motion.at(this.motion.start, 0) : Float64Array.from(data.q);
    this.time = this.motion ? this.motion.start : 0;
    this.follows = data.follow;
    this.makeItems(bytes);
    this.makePanels();
    this.listen();
    new ResizeObserver(() => this.resized()).observe(root);
    this.resized();
  }

  makeItems(bytes) {
    const meshes = this.data.meshes.map((mesh) => {
      const faces = new (mesh.wide ? Uint32Array : Uint16Array)(bytes, mesh.faces, 3 * mesh.triangles);
      return this.renderer.addMesh(new Uint16Array(bytes, mesh.vertices, 3 * mesh.count), faces, mesh.low, mesh.step);
    });
    this.items = [];
    this.data.places.forEach((place, member) => {
      for (const part of this.data.parts) {
        const pose = fromRows([...part.pose, 0, 0, 0, 1]);
        this.items.push({ ...part, member, place, pose, mesh: meshes[part.mesh], world: pose });
      }
      for (const strut of this.data.struts) this.items.push({ ...strut, member, place, mesh: meshes[strut.mesh], world: null });
      const trail = this.data.trails[member], still = fromRows([1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1]);
      if (trail) this.items.push({ ...trail, link: -1, name: "trail", member, place, pose: still, mesh: meshes[trail.mesh], world: still });
    });
    const grid = this.renderer.addLines(gridLines(this.data.grid)), still = fromRows([1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1]);
    this.background = { mesh: grid, colour: [0.5, 0.5, 0.5, 0.35], world: still };
  }

  // Where all parts are, for the configurations of all members.
  place() {
    const count = this.data.places.length;
    for (let member = count - 1; member >= 0; member--) {
      // the poses of the first member stay in this.poses
      const q = this.motion ? this.motion.at(this.time, member) : this.q;
      link_poses(q, this.poses);
      if (member === 0) this.q = q;
      const links = this.data.links.map((_, k) => fromRows(this.poses, 16 * k));
      for (const item of this.items)
        if (item.member === member) {
          if (item.ends) item.world = this.stretched(item, links);
          else item.world = item.link < 0 ? item.pose.slice() : product(links[item.link], item.pose);
          for (let k = 0; k < 3; k++) item.world[12 + k] += item.place[k];
        }
    }
  }

  // From the frame of a strut, which lies along z, into the world: between its points, flat towards the first view.
  stretched({ ends, length }, links) {
    const [a, b] = ends.map(({ link, point }) => (link < 0 ? point : moved(links[link], point)));
    const way = subtract(b, a), square = cross(way, this.data.toward), flat = Math.hypot(...square) > 1e-9;
    const x = unit(flat ? square : cross(way, Math.abs(way[0]) < Math.abs(way[1]) ? [1, 0, 0] : [0, 1, 0])), y = unit(cross(way, x));
    return new Float64Array([...x, 0, ...y, 0, ...scaled(way, 1 / length), 0, ...a, 1]);
  }

  // Where the first link is.
  origin() {
    return [3, 7, 11].map((k) => this.poses[16 * this.data.base + k]);
  }

  draw() {
    this.place();
    this.start ??= this.origin();
    const moved = this.follows ? subtract(this.origin(), this.start) : [0, 0, 0];
    this.camera.look(this.canvas.width / this.canvas.height, moved, this.free());
    this.renderer.draw(this.camera, [...this.items, this.background]);
    this.showNames();
    if (this.motion) this.showTime();
  }

  // Names of joints and points, beside where they are seen.
  showNames() {
    const { clientWidth: width, clientHeight: height } = this.canvas, seen = this.camera.seen;
    this.data.labels.forEach(({ link, point }, k) => {
      const place = link < 0 ? point : moved(fromRows(this.poses, 16 * link), point);
      const at = [0, 1, 3].map((row) => seen[row] * place[0] + seen[4 + row] * place[1] + seen[8 + row] * place[2] + seen[12 + row]);
      const x = ((1 + at[0] / at[2]) * width) / 2, y = ((1 - at[1] / at[2]) * height) / 2;
      this.names[k].hidden = !this.named || !(at[2] > 0);
      this.names[k].style.transform = `translate(${x + 9}px, ${y - 24}px)`;
    });
  }

  // A box to tick that shows and hides them.
  naming() {
    const named = element("input", { type: "checkbox", checked: true, onchange: () => {
      this.named = named.checked;
      this.changed();
    } });
    return element("label", { className: "naming", title: "names of joints and points" }, named, "names");
  }

  // What controls leave free of the picture: left, right, bottom and top, from -1 to 1.
  free() {
    const { width, height } = this.root.getBoundingClientRect(), panel = this.panel?.getBoundingClientRect();
    const right = panel && panel.width < width / 2 ? 1 - (2 * (panel.width + 12)) / width : 1;
    const bottom = this.motion ? -1 + Math.min(96 / height, 0.4) : -1;
    return [-1, right, bottom, 1 - Math.min(72 / height, 0.3)];
  }

  // Once before the next picture of the screen.
  changed() {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame((now) => {
      this.waiting = false;
      if (this.playing) this.advance(now);
      this.draw();
      if (this.playing) this.changed();
    });
  }

  resized() {
    const ratio = Math.min(window.devicePixelRatio || 1, 2), box = this.root.getBoundingClientRect();
    this.canvas.width = Math.max(1, Math.round(box.width * ratio));
    this.canvas.height = Math.max(1, Math.round(box.height * ratio));
    this.changed();
  }

  // -- time --

  play() {
    if (this.time >= this.motion.end) this.time = this.motion.start;
    this.playing = true;
    this.last = null;
    this.changed();
  }

  pause() {
    this.playing = false;
    this.changed();
  }

  seek(time) {
    this.time = Math.min(Math.max(time, this.motion.start), this.motion.end);
    this.changed();
  }

  advance(now) {
    const { start, end } = this.motion, passed = this.last === null ? 0 : (now - this.last) / 1000;
    this.last = now;
    this.time += passed * this.speed;
    if (this.time > end) {
      this.time = this.loops && end > start ? start + ((this.time - end) % (end - start)) : end;
      this.playing = this.loops;
    }
  }

  showTime() {
    this.scrubber.value = this.time;
    this.clock.textContent = this.motion.unit ? `${this.time.toFixed(2)} ${this.motion.unit}` : "";
    this.button.textContent = this.playing ? "\u275a\u275a" : "\u25b6";
    this.button.title = this.playing ? "pause" : "play";
    if (this.plot) this.plot.draw(this.time);
  }

  // -- controls --

  makePanels() {
    this.root.append(element("div", { className: "title", textContent: this.data.title }));
    if (this.data.note) this.root.append(element("div", { className: "note", textContent: this.data.note }));
    if (this.motion) this.root.append(this.bar());
    if (!this.motion && this.data.sliders.length) this.root.append((this.panel = this.sliders()));
  }

  bar() {
    const { start, end } = this.motion;
    this.speed = 1;
    this.loops = true;
    this.button = element("button", { type: "button", onclick: () => (this.playing ? this.pause() : this.play()) });
    this.scrubber = element("input", { type: "range", className: "scrubber", min: start, max: end, step: "any" });
    this.scrubber.setAttribute("aria-label", this.motion.label);
    this.scrubber.addEventListener("input", () => {
      this.playing = false;
      this.seek(this.scrubber.valueAsNumber);
    });
    this.clock = element("span", { className: "clock" });
    const speeds = element("select", { title: "speed", onchange: () => (this.speed = Number(speeds.value)) });
    for (const speed of SPEEDS) speeds.append(element("option", { value: speed, textContent: `${speed}\u00d7`, selected: speed === 1 }));
    const again = element("input", { type: "checkbox", checked: true, onchange: () => (this.loops = again.checked) });
    const curves = element("select", { title: "curve of a coordinate" }, element("option", { textContent: "curves", value: "" }));
    this.data.coordinates.forEach((name, k) => curves.append(element("option", { value: k, textContent: name })));
    curves.onchange = () => this.showCurve(curves.value);
    const follow = element("input", { type: "checkbox", checked: this.follows, onchange: () => {
      this.follows = follow.checked;
      this.changed();
    } });
    const bar = element("div", { className: "bar" }, this.button, this.scrubber, this.clock, speeds, curves,
      element("label", { title: "again and again" }, again, "loop"));
    if (this.names.length) bar.append(this.naming());
    if (this.data.follow) bar.append(element("label", { title: "look at the base wherever it goes" }, follow, "follow"));
    return bar;
  }

  showCurve(column) {
    this.plot?.canvas.remove();
    this.plot = column === "" ? null : new Curve(this.motion, Number(column), this.data.coordinates[column], this.data.units[column]);
    if (this.plot) this.root.append(this.plot.canvas);
    this.changed();
  }

  sliders() {
    const panel = element("div", { className: "sliders" });
    this.turned = {}; // rotation vectors of joints with quaternions
    for (const slider of this.data.sliders) {
      const input = element("input", { type: "range", min: slider.lower, max: slider.upper, step: "any" });
      const value = element("output");
      const show = () => (value.textContent = told(input.valueAsNumber, slider.unit));
      input.value = slider.value;
      input.setAttribute("aria-label", slider.name);
      input.addEventListener("input", () => {
        this.setCoordinate(slider, input.valueAsNumber);
        show();
      });
      show();
      panel.append(element("label", {}, element("span", { textContent: slider.name, title: slider.name }), input, value));
    }
    if (this.names.length) panel.append(this.naming());
    return element("details", { className: "panel", open: this.root.clientWidth > 500 }, element("summary", { textContent: "joints" }), panel);
  }

  setCoordinate(slider, value) {
    if (slider.axis === undefined) this.q[slider.q] = value;
    else {
      const turn = (this.turned[slider.q] ??= this.data.sliders.filter((one) => one.q === slider.q).map((one) => one.value));
      turn[slider.axis] = value;
      const angle = Math.hypot(...turn), share = angle > 1e-12 ? Math.sin(angle / 2) / angle : 0.5;
      this.q.set([Math.cos(angle / 2), ...scaled(turn, share)], slider.q);
    }
    this.changed();
  }

  setConfiguration(q) {
    this.q = Float64Array.from(q);
    this.changed();
  }

  listen() {
    const canvas = this.canvas, fingers = new Map();
    const middle = () => [...fingers.values()].reduce((a, b) => [a[0] + b[0] / fingers.size, a[1] + b[1] / fingers.size], [0, 0]);
    const spread = () => Math.hypot(...[0, 1].map((k) => [...fingers.values()][0][k] - [...fingers.values()][1][k]));
    canvas.addEventListener("contextmenu", (event) => event.preventDefault());
    canvas.addEventListener("pointerdown", (event) => {
      canvas.setPointerCapture(event.pointerId);
      fingers.set(event.pointerId, [event.clientX, event.clientY]);
      this.tip.textContent = "";
    });
    for (const name of ["pointerup", "pointercancel"]) canvas.addEventListener(name, (event) => fingers.delete(event.pointerId));
    canvas.addEventListener("pointermove", (event) => {
      if (!fingers.has(event.pointerId)) return this.hover(event);
      const before = middle(), apart = fingers.size > 1 ? spread() : 0;
      fingers.set(event.pointerId, [event.clientX, event.clientY]);
      const after = middle(), dx = after[0] - before[0], dy = after[1] - before[1];
      if (fingers.size > 1 || event.buttons & 6 || event.shiftKey) this.camera.pan(dx, dy, canvas.clientHeight);
      else this.camera.turn(dx, dy);
      if (fingers.size > 1) this.camera.zoom(apart / (spread() || 1));
      this.changed();
    });
    canvas.addEventListener("wheel", (event) => {
      event.preventDefault();
      this.camera.zoom(Math.exp(0.0012 * event.deltaY));
      this.changed();
    }, { passive: false });
    document.addEventListener("keydown", (event) => {
      if (event.key !== " " || !this.motion || event.target !== document.body) return;
      event.preventDefault();
      this.playing ? this.pause() : this.play();
    });
  }

  // The name of the link under the pointer.
  hover(event) {
    if (this.playing) return;
    const box = this.canvas.getBoundingClientRect(), ratio = this.canvas.width / box.width;
    const x = Math.floor((event.clientX - box.left) * ratio), y = this.canvas.height - 1 - Math.floor((event.clientY - box.top) * ratio);
    const found = this.renderer.pick(this.camera, this.items, x, y);
    this.tip.textContent = found ? found.name ?? this.data.links[found.link] ?? "ground" : "";
    this.tip.style.transform = `translate(${event.clientX - box.left + 12}px, ${event.clientY - box.top + 12}px)`;
    this.changed();
  }
}

// Cell by cell, as lines that reach behind the camera are not drawn everywhere.
function gridLines({ middle, ways, count }) {
  const points = [], at = (i, j) => add(middle, add(scaled(ways[0], i), scaled(ways[1], j)));
  for (let i = -count; i <= count; i++)
    for (let j = -count; j < count; j++) points.push(...at(i, j), ...at(i, j + 1), ...at(j, i), ...at(j + 1, i));
  return points;
}

// One coordinate over time, of all members, and where the player is.
class Curve {
  constructor(motion, column, name, unit) {
    Object.assign(this, { motion, column, name, unit });
    this.canvas = element("canvas", { className: "curve", width: 600, height: 260 });
    this.all = Array.from({ length: motion.members }, (_, member) => motion.series(column, member));
    this.low = Math.min(...this.all.map((one) => one.reduce((a, b) => Math.min(a, b), Infinity)));
    this.high = Math.max(...this.all.map((one) => one.reduce((a, b) => Math.max(a, b), -Infinity)));
    this.margin = this.high - this.low < 1e-9 ? 1 : 0; // of a curve that is level
  }

  draw(time) {
    const { width, height } = this.canvas, pen = this.canvas.getContext("2d"), { start, end, frames } = this.motion;
    const y = (value) => height - 20 - ((height - 90) * (value - this.low + this.margin)) / (this.high - this.low + 2 * this.margin);
    const colour = getComputedStyle(this.canvas).color;
    pen.clearRect(0, 0, width, height);
    pen.font = "22px sans-serif";
    pen.fillStyle = colour;
    const now = this.motion.at(time, 0)[this.column];
    this.words = [`${this.name} = ${told(now, this.unit)}`, `from ${told(this.low, this.unit)} to ${told(this.high, this.unit)}`];
    this.words.forEach((line, k) => pen.fillText(line, 10, 26 + 28 * k));
    this.canvas.setAttribute("aria-label", this.words.join(", "));
    pen.strokeStyle = "#0072B2";
    pen.lineWidth = 2.5;
    for (const one of this.all) {
      pen.beginPath();
      const stride = Math.max(1, Math.floor(frames / width));
      for (let k = 0; k < frames; k += stride) pen.lineTo((width * k) / Math.max(frames - 1, 1), y(one[k]));
      pen.stroke();
    }
    pen.strokeStyle = colour;
    pen.lineWidth = 1.5;
    pen.beginPath();
    const x = (width * (time - start)) / (end - start || 1);
    pen.moveTo(x, 66);
    pen.lineTo(x, height);
    pen.stroke();
  }
}

(async () => {
  const root = document.getElementById("linkwise");
  try {
    const data = JSON.parse(document.getElementById("linkwise-data").textContent);
    window.player = new Player(root, data, await inflated(data.bytes));
  } catch (error) {
    root.append(element("div", { className: "note", textContent: `This picture cannot be shown: ${error.message}` }));
    throw error;
  }
})();
