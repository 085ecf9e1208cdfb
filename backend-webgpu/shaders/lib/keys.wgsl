// Keys and values as numbers: four at a time where heads are whole vectors of four, which halves always are.
//!if HALVES
fn halves4(words: vec2<u32>) -> vec4<f32> {
    return vec4<f32>(unpack2x16float(words.x), unpack2x16float(words.y));
}

fn key_at(i: u32) -> KEY {
    return halves4(k[i]);
}

fn value_at(i: u32) -> VALUE {
    return halves4(v[i]);
}
//!else
fn key_at(i: u32) -> KEY {
    return k[i];
}

fn value_at(i: u32) -> VALUE {
    return v[i];
}
//!end
