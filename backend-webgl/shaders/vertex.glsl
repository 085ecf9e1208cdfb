#version 300 es
// One triangle that covers the viewport, or one for each slice. Its corners come from a buffer: SwiftShader in Chromium
// 80 to 92 draws nothing where no attribute is read.
layout(location = 0) in vec2 corner;
flat out int slice;

void main() {
    slice = gl_InstanceID;
    gl_Position = vec4(corner, 0.0, 1.0);
}
