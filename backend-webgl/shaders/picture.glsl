// A picture of a matrix, a texel an element: dark at 0, orange above and blue below. Brightness is logarithmic, so that it
// is half at 1 and whole at 100. What is no number is magenta.
uniform ivec2 origin;
// The element of the lower left texel, the elements from one line to the next, and the matrix's rows and columns.
uniform ivec4 elements;
out vec4 colour;

void main() {
    ivec2 at = ivec2(gl_FragCoord.xy) - origin;
    int element = elements.x + at.y * elements.y + at.x;
    int row = element / elements.w;
    vec3 dark = vec3(0.10, 0.11, 0.13);
    if (row >= elements.z) {
        colour = vec4(dark, 1.0);
        return;
    }
    float value = load1(t0, elements.w, row, element - row * elements.w);
    float size = abs(value);
    vec3 hue = value < 0.0 ? vec3(0.25, 0.65, 1.0) : vec3(1.0, 0.62, 0.15);
    vec3 shade = mix(dark, hue, min(log(1.0 + 100.0 * size) / log(10001.0), 1.0));
    colour = vec4(size >= 0.0 ? shade : vec3(1.0, 0.0, 1.0), 1.0);
}
