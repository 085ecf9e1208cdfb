#version 300 es
// One triangle that covers the viewport, or one for each slice.
flat out int slice;

void main() {
    slice = gl_InstanceID;
    gl_Position = vec4(gl_VertexID == 1 ? 3.0 : -1.0, gl_VertexID == 2 ? 3.0 : -1.0, 0.0, 1.0);
}
