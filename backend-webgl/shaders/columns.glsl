// Columns of an operand from anywhere on, four at a time; those beyond the operand's last are of no meaning.
#define columns4(source, cols, row, col) \
    (((col) & 3) == 0 \
        ? load4(source, cols, row, (col) / 4) \
        : vec4( \
            load1(source, cols, row, col), \
            load1(source, cols, row, (col) + 1), \
            load1(source, cols, row, (col) + 2), \
            load1(source, cols, row, (col) + 3) \
        ))

// Those that the fragment makes.
//!if PACKED
#define column_lanes(source, cols, row, col) columns4(source, cols, row, col)
//!else
#define column_lanes(source, cols, row, col) vec4(load1(source, cols, row, col), 0.0, 0.0, 0.0)
//!end
