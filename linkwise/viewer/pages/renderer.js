// Draws meshes and lines with WebGL 2: one light from the camera, one from above; tells what is under a pixel.
"use strict";

const VERTEX = `#version 300 es
in vec3 position; in vec3 normal;
uniform mat4 world; uniform mat4 seen;
out vec3 across;
void main() { across = mat3(world) * normal; gl_Position = seen * world * vec4(position, 1.0); }`;

const FRAGMENT = `#version 300 es
precision highp float;
in vec3 across;
uniform vec4 colour; uniform vec3 toward; uniform vec3 up; uniform float lit;
out vec4 result;
void main() {
  vec3 n = normalize(across + vec3(1e-12));
  if (dot(n, toward) < 0.0) n = -n;
  float light = 0.40 + 0.16 * dot(n, up) + 0.52 * max(dot(n, normalize(toward + 0.6 * up)), 0.0);
  result = vec4(mix(colour.rgb, (0.93 * colour.rgb + 0.07) * light, lit), 1.0) * colour.a; // black has shades, too
}`;

const CREASE = Math.cos((40 * Math.PI) / 180); // faces that meet at a larger angle have an edge between them

class Renderer {
  constructor(canvas) {
    this.canvas = canvas;
    const gl = (this.gl = canvas.getContext("webgl2", { antialias: true, alpha: true }));
    if (!gl) throw new Error("this browser has no WebGL 2, which the picture needs");
    this.program = this.linked(VERTEX, FRAGMENT);
    this.places = {};
    for (const name of ["world", "seen", "colour", "toward", "up", "lit"]) this.places[name] = gl.getUniformLocation(this.program, name);
    this.meshes = [];
    gl.enable(gl.DEPTH_TEST);
    gl.blendFunc(gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
  }

  linked(...sources) {
    const gl = this.gl, program = gl.createProgram();
    sources.forEach((source, k) => {
      const shader = gl.createShader(k ? gl.FRAGMENT_SHADER : gl.VERTEX_SHADER);
      gl.shaderSource(shader, source);
      gl.compileShader(shader);
      if (!gl.getShaderParameter(shader, gl.COMPILE_STATUS)) throw new Error(gl.getShaderInfoLog(shader));
      gl.attachShader(program, shader);
    });
    gl.bindAttribLocation(program, 0, "position");
    gl.bindAttribLocation(program, 1, "normal");
    gl.linkProgram(program);
    return program;
  }

  // Triangles with corners `faces` among vertices, three whole numbers each, times `step` and beyond `low`; its number.
  addMesh(packed, faces, low, step) {
    const vertices = Float32Array.from(packed, (x, k) => low[k % 3] + step[k % 3] * x);
    const { positions, normals } = withNormals(vertices, faces, byPlace(packed, faces));
    return this.added(positions, normals, this.gl.TRIANGLES);
  }

  // Pairs of points.
  addLines(points) {
    return this.added(new Float32Array(points), new Float32Array(points.length), this.gl.LINES);
  }

  added(positions, normals, mode) {
    const gl = this.gl, array = gl.createVertexArray();
    gl.bindVertexArray(array);
    [positions, normals].forEach((numbers, k) => {
      gl.bindBuffer(gl.ARRAY_BUFFER, gl.createBuffer());
      gl.bufferData(gl.ARRAY_BUFFER, numbers, gl.STATIC_DRAW);
      gl.enableVertexAttribArray(k);
      gl.vertexAttribPointer(k, 3, gl.FLOAT, false, 0, 0);
    });
    this.meshes.push({ array, mode, count: positions.length / 3 });
    return this.meshes.length - 1;
  }

  // items: {mesh, world (16 numbers), colour (4)}, those one can see through last.
  draw(camera, items) {
    const gl = this.gl;
    this.begin(camera);
    const clear = items.filter((item) => item.colour[3] < 1);
    for (const item of items) if (item.colour[3] >= 1) this.drawOne(item, item.colour);
    gl.enable(gl.BLEND);
    gl.depthMask(false);
    for (const item of clear) this.drawOne(item, item.colour);
    gl.depthMask(true);
    gl.disable(gl.BLEND);
  }

  begin(camera) {
    const gl = this.gl;
    gl.viewport(0, 0, this.canvas.width, this.canvas.height);
    gl.clearColor(0, 0, 0, 0);
    gl.clear(gl.COLOR_BUFFER_BIT | gl.DEPTH_BUFFER_BIT);
    gl.useProgram(this.program);
    gl.uniformMatrix4fv(this.places.seen, false, new Float32Array(camera.seen));
    gl.uniform3fv(this.places.toward, camera.toward);
    gl.uniform3fv(this.places.up, camera.up);
  }

  drawOne(item, colour, lit = true) {
    const gl = this.gl, mesh = this.meshes[item.mesh];
    gl.uniformMatrix4fv(this.places.world, false, new Float32Array(item.world));
    gl.uniform4fv(this.places.colour, colour);
    gl.uniform1f(this.places.lit, lit && mesh.mode === gl.TRIANGLES ? 1 : 0);
    gl.bindVertexArray(mesh.array);
    gl.drawArrays(mesh.mode, 0, mesh.count);
  }

  // The item whose picture is at a pixel (from the lower left corner), or null.
  pick(camera, items, x, y) {
    const gl = this.gl, pixel = new Uint8Array(4);
    this.framebuffer ??= gl.createFramebuffer();
    const made = [gl.createRenderbuffer(), gl.createRenderbuffer()];
    gl.bindFramebuffer(gl.FRAMEBUFFER, this.framebuffer);
    [[gl.RGBA8, gl.COLOR_ATTACHMENT0], [gl.DEPTH_COMPONENT16, gl.DEPTH_ATTACHMENT]].forEach(([format, place], k) => {
      gl.bindRenderbuffer(gl.RENDERBUFFER, made[k]);
      gl.renderbufferStorage(gl.RENDERBUFFER, format, this.canvas.width, this.canvas.height);
      gl.framebufferRenderbuffer(gl.FRAMEBUFFER, place, gl.RENDERBUFFER, made[k]);
    });
    gl.enable(gl.SCISSOR_TEST);
    gl.scissor(x, y, 1, 1);
    this.begin(camera);
    items.forEach((item, k) => this.drawOne(item, [((k + 1) & 255) / 255, ((k + 1) >> 8) / 255, 0, 1], false));
    gl.readPixels(x, y, 1, 1, gl.RGBA, gl.UNSIGNED_BYTE, pixel);
    gl.disable(gl.SCISSOR_TEST);
    gl.bindFramebuffer(gl.FRAMEBUFFER, null);
    made.forEach((one) => gl.deleteRenderbuffer(one));
    return items[pixel[0] + 256 * pixel[1] - 1] ?? null;
  }
}

// Each corner of each triangle with a normal: the sum of those of all faces around it that are not beyond an edge.
function withNormals(vertices, faces, { places, starts, around }) {
  const corners = faces.length, flat = new Float64Array(corners), sizes = new Float64Array(corners / 3);
  for (let face = 0; face < corners / 3; face++) {
    const [a, b, c] = [0, 1, 2].map((k) => vertices.subarray(3 * faces[3 * face + k], 3 * faces[3 * face + k] + 3));
    const normal = cross(subtract(b, a), subtract(c, a)); // as long as the face is large
    flat.set(normal, 3 * face);
    sizes[face] = Math.hypot(...normal);
  }
  const positions = new Float32Array(3 * corners), normals = new Float32Array(3 * corners);
  for (let corner = 0; corner < corners; corner++) {
    const own = Math.floor(corner / 3), place = places[faces[corner]];
    const nx = flat[3 * own], ny = flat[3 * own + 1], nz = flat[3 * own + 2];
    let x = 0, y = 0, z = 0;
    for (let k = starts[place]; k < starts[place + 1]; k++) {
      const face = around[k], ox = flat[3 * face], oy = flat[3 * face + 1], oz = flat[3 * face + 2];
      if (nx * ox + ny * oy + nz * oz < CREASE * sizes[own] * sizes[face]) continue;
      x += ox;
      y += oy;
      z += oz;
    }
    const length = Math.hypot(x, y, z) || 1;
    normals.set([x / length, y / length, z / length], 3 * corner);
    positions.set(vertices.subarray(3 * faces[corner], 3 * faces[corner] + 3), 3 * corner);
  }
  return { positions, normals };
}

// The faces around each place: those of place p are around[starts[p]] to around[starts[p + 1] - 1]; vertices at one
// place, of which files have many, are one.
function byPlace(packed, faces) {
  const known = new Map(), places = new Uint32Array(packed.length / 3);
  for (let k = 0; k < places.length; k++) {
    const key = (packed[3 * k] * 65536 + packed[3 * k + 1]) * 65536 + packed[3 * k + 2];
    if (!known.has(key)) known.set(key, known.size);
    places[k] = known.get(key);
  }
  const starts = new Uint32Array(known.size + 1), around = new Uint32Array(faces.length);
  for (const vertex of faces) starts[places[vertex] + 1]++;
  for (let place = 0; place < known.size; place++) starts[place + 1] += starts[place];
  const next = starts.slice();
  faces.forEach((vertex, corner) => (around[next[places[vertex]]++] = Math.floor(corner / 3)));
  return { places, starts, around };
}
