// The frame of kernels that make one value a texel, whatever the layout: `float raw(int index)`.
#include "dense.glsl"

layout(location = 0) out vec4 result;

float raw(int index);

void main() {
    int index = fragment();
    if (index >= out_count) discard;
    result = vec4(raw(index), 0.0, 0.0, 0.0);
}
