// A few rows of x that were made ready, as a kernel of products reads them.
//!include lib/group.wgsl
//!include lib/lanes.wgsl
//!include lib/ready.wgsl

// Elements 32 g .. 32 g + 31 of a row.
fn ready32(row: u32, g: u32) -> Group {
    let at = ROW_AT + row * 8u * p.w_groups + g;
    let n = p.w_groups;
    return Group(
        x[at], x[at + n], x[at + 2u * n], x[at + 3u * n], x[at + 4u * n], x[at + 5u * n], x[at + 6u * n], x[at + 7u * n]);
}
