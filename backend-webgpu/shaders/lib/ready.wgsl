// Where rows lie that were made ready for products: vector i of four of each group after that of the groups before, so that
// neighbouring groups are neighbours; behind all rows what each one's products are multiplied by.
fn ready_at(row: u32, i: u32) -> u32 {
    return ROW_AT + (row * 8u + i % 8u) * p.w_groups + i / 8u;
}

fn scale_at(row: u32) -> u32 {
    return ROW_AT + ALL_ROWS * 8u * p.w_groups + row;
}
