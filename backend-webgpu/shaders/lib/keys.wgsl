// Keys and values as numbers: four at a time where heads are whole vectors of four. Each may be in a codec of its own.
//!if KEY_HALVES || VALUE_HALVES
fn halves4(words: vec2<u32>) -> vec4<f32> {
    return vec4<f32>(unpack2x16float(words.x), unpack2x16float(words.y));
}

//!end
//!if KEY_BLOCKS
//!reader k
fn key_at(i: u32) -> KEY {
    return k_quad(i / KEY_QUADS, i % KEY_QUADS);
}
//!else
fn key_at(i: u32) -> KEY {
//!if KEY_HALVES
//!if VEC4
    return halves4(k[i]);
//!else
    return unpack2x16float(k[i / 2u])[i % 2u];
//!end
//!else
    return k[i];
//!end
}
//!end

//!if VALUE_BLOCKS
//!reader v
fn value_at(i: u32) -> VALUE {
    return v_quad(i / VALUE_QUADS, i % VALUE_QUADS);
}
//!else
fn value_at(i: u32) -> VALUE {
//!if VALUE_HALVES
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
