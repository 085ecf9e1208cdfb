// append: rows of x.
#include "frame.glsl"

vec4 value(int row, int col) {
    return lanes(src_x, out_cols, row - append_first(), col);
}
