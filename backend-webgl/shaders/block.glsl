// Blocks of rows, a target each. Their texels lie in lines of block_line; the lines of all `blocks` lie above each
// other, then come those of the next columns. A matrix has as many blocks as the rows of a block are `apart`, so that
// neighbours above each other read neighbouring rows.
//!if EIGHT
#define EACH(f) \
    f(0, row0, sum0, at0) f(1, row1, sum1, at1) f(2, row2, sum2, at2) f(3, row3, sum3, at3) \
    f(4, row4, sum4, at4) f(5, row5, sum5, at5) f(6, row6, sum6, at6) f(7, row7, sum7, at7)
//!else
#define EACH(f) f(0, row0, sum0, at0) f(1, row1, sum1, at1) f(2, row2, sum2, at2) f(3, row3, sum3, at3)
//!end

// The block and the column texel of a texel.
ivec2 block_of(int texel) {
    int line = texel / block_line;
    int strip = line / blocks;
    return ivec2(line - strip * blocks, strip * block_line + texel - line * block_line);
}

int block_texel(int block, int col_texel) {
    int strip = col_texel / block_line;
    return (strip * blocks + block) * block_line + col_texel - strip * block_line;
}
