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
  result = vec4(colour.rgb * mix(1.0, light, lit), 1.0) * colour.a;
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

  // Triangles with corners `faces` among `vertices` (three numbers each); its number.
  addMesh(vertices, faces) {
    const { positions, normals } = withNormals(vertices, faces);
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

// Each corner of each triangle with a normal: that of all faces around it that are not beyond an edge.
function withNormals(vertices, faces) {
  const count = faces.length / 3, flat = new Float32Array(faces.length), around = new Map();
  const place = (corner) => `${vertices[3 * corner]},${vertices[3 * corner + 1]},${vertices[3 * corner + 2]}`;
  const at = (corner) => [vertices[3 * corner], vertices[3 * corner + 1], vertices[3 * corner + 2]];
  const keys = new Array(faces.length);
  for (let face = 0; face < count; face++) {
    const [a, b, c] = [0, 1, 2].map((k) => at(faces[3 * face + k]));
    flat.set(cross(subtract(b, a), subtract(c, a)), 3 * face); // as long as the face is large
    for (let k = 0; k < 3; k++) {
      const key = (keys[3 * face + k] = place(faces[3 * face + k]));
      if (!around.has(key)) around.set(key, []);
      around.get(key).push(face);
    }
  }
  const positions = new Float32Array(3 * faces.length), normals = new Float32Array(3 * faces.length);
  const of = (face) => [flat[3 * face], flat[3 * face + 1], flat[3 * face + 2]];
  for (let corner = 0; corner < faces.length; corner++) {
    const own = of(Math.floor(corner / 3)), length = Math.hypot(...own);
    let sum = [0, 0, 0];
    for (const face of around.get(keys[corner])) {
      const other = of(face);
      if (dot(own, other) >= CREASE * length * Math.hypot(...other)) sum = add(sum, other);
    }
    positions.set(at(faces[corner]), 3 * corner);
    normals.set(unit(sum), 3 * corner);
  }
  return { positions, normals };
}
