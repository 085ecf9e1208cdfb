// A picture of a matrix, a pixel an element: dark at 0, orange above and blue below. Brightness is logarithmic, so that it is
// half at 1 and whole at 100. What is no number is magenta.

struct Tile {
    origin: vec2u,
    // The element of the upper left pixel, the elements from one line to the next, and their number.
    first: u32,
    stride: u32,
    count: u32,
    pad0: u32,
    pad1: u32,
    pad2: u32,
}

@group(0) @binding(0) var<storage, read> values: array<f32>;
@group(0) @binding(1) var<storage, read> tiles: array<Tile>;

struct Corner {
    @builtin(position) position: vec4f,
    @location(0) @interpolate(flat) tile: u32,
}

@vertex
fn corner(@builtin(vertex_index) vertex: u32, @builtin(instance_index) tile: u32) -> Corner {
    let at = vec2f(f32(vertex & 1u), f32(vertex >> 1u));
    return Corner(vec4f(at * 4.0 - 1.0, 0.0, 1.0), tile);
}

@fragment
fn paint(corner: Corner) -> @location(0) vec4f {
    let tile = tiles[corner.tile];
    let at = vec2u(corner.position.xy) - tile.origin;
    let element = tile.first + at.y * tile.stride + at.x;
    let dark = vec3f(0.10, 0.11, 0.13);
    if element >= tile.count {
        return vec4f(dark, 1.0);
    }
    let value = values[element];
    let size = abs(value);
    let hue = select(vec3f(1.0, 0.62, 0.15), vec3f(0.25, 0.65, 1.0), value < 0.0);
    let shade = mix(dark, hue, min(log(1.0 + 100.0 * size) / log(10001.0), 1.0));
    return vec4f(select(vec3f(1.0, 0.0, 1.0), shade, size >= 0.0), 1.0);
}
