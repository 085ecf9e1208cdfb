// The frame of kernels that make one value a texel, whatever the layout: `float raw(int index)`. With TWO, `raw2` makes
// that of a second target; it is called after it.
//!include dense.glsl

layout(location = 0) out TEXEL result;
//!if TWO
layout(location = 1) out TEXEL result2;
//!end

float raw(int index);
//!if TWO
float raw2(int index);
//!end

void main() {
    int index = fragment();
    if (index >= out_count) discard;
    result = texel_of(vec4(raw(index), 0.0, 0.0, 0.0));
//!if TWO
    result2 = texel_of(vec4(raw2(index), 0.0, 0.0, 0.0));
//!end
}
