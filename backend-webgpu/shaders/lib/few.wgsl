// A few rows of x that were made ready, as a kernel of products reads them.
//!include lib/group.wgsl
//!include lib/ready.wgsl
//!include lib/together.wgsl

// Sums of each of its ROWS rows over the LANES invocations that share rows of weights, in the order in which those of one row
// are added: all are left first, then each of these invocations ends some of them.
var<workgroup> few_sums: array<SUM, ROWS * (WG / TOGETHER)>;

fn few_leave(lane: u32, row: u32, own: SUM) {
    let sum = together_sum(own);
    if (lane % TOGETHER == 0u) {
        few_sums[row * (WG / TOGETHER) + lane / TOGETHER] = sum;
    }
}

fn few_sum(lane: u32, row: u32) -> SUM {
    let first = row * (WG / TOGETHER) + lane / LANES * (LANES / TOGETHER);
    var sum = few_sums[first];
    for (var i = 1u; i < LANES / TOGETHER; i++) {
        sum += few_sums[first + i];
    }
    return sum;
}

// The first row of a workgroup. Where rows do not come out even, the last workgroups do a few once more: not all drivers drop what
// is written beyond a buffer's end.
fn few_first(workgroup: u32) -> u32 {
    return min(workgroup * ROWS, ALL_ROWS - ROWS);
}

// Elements 32 g .. 32 g + 31 of a row.
fn ready32(row: u32, g: u32) -> Group {
    let at = ROW_AT + row * 8u * p.w_groups + g;
    let n = p.w_groups;
    return Group(
        x[at], x[at + n], x[at + 2u * n], x[at + 3u * n], x[at + 4u * n], x[at + 5u * n], x[at + 6u * n], x[at + 7u * n]);
}
