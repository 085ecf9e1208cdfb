// Groups of rows of x.
//!include lib/group.wgsl
//!include lib/rows.wgsl

// A row's elements 32 g .. 32 g + 31.
fn x32(row: u32, g: u32) -> Group {
    let i = g * 8u;
    return Group(
        x4(row, i), x4(row, i + 1u), x4(row, i + 2u), x4(row, i + 3u),
        x4(row, i + 4u), x4(row, i + 5u), x4(row, i + 6u), x4(row, i + 7u));
}
