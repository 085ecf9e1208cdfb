// Keys and values as numbers: four at a time where heads are whole vectors of four.
//!if BLOCKS
//!reader k
//!reader v

fn key_at(i: u32) -> KEY {
    return k_quad(i / KEY_QUADS, i % KEY_QUADS);
}

fn value_at(i: u32) -> VALUE {
    return v_quad(i / VALUE_QUADS, i % VALUE_QUADS);
}
//!else
//!if HALVES
fn halves4(words: vec2<u32>) -> vec4<f32> {
    return vec4<f32>(unpack2x16float(words.x), unpack2x16float(words.y));
}

//!end
fn key_at(i: u32) -> KEY {
//!if HALVES
//!if VEC4
    return halves4(k[i]);
//!else
    return unpack2x16float(k[i / 2u])[i % 2u];
//!end
//!else
    return k[i];
//!end
}

fn value_at(i: u32) -> VALUE {
//!if HALVES
//!if VALUES4
    return halves4(v[i]);
//!else
    return unpack2x16float(v[i / 2u])[i % 2u];
//!end
//!else
    return v[i];
//!end
}
//!end
