// Trits: numbers of three values, five in a byte, as fractions in base 3. Digit n of a byte b is the whole part of
// 3 * (b * 3^n mod 256) / 256. A block of 8 groups has 13 words: five groups are the digits of 8 words, the next 20 quads
// of four elements those of 4 words, and the last four quads the first digits of one word.

// The four digits of quad i of a group, a byte each.
fn digits(group: u32, i: u32) -> vec4<u32> {
    let quad = (group & 7u) * 8u + i;
    let late = quad >= 60u;
    let middle = quad >= 40u && !late;
    let word = select(select(quad & 7u, 8u + (quad & 3u), middle), 12u, late);
    let n = select(select(quad >> 3u, (quad - 40u) >> 2u, middle), quad - 60u, late);
    let power = (select(1u, 3u, (n & 1u) != 0u)) * select(1u, 9u, (n & 2u) != 0u) * select(1u, 81u, n == 4u);
    let at = (group >> 3u) * 13u + word;
    let bytes = (vec4<u32>(weights[TRITS + (at >> 2u)][at & 3u]) >> vec4<u32>(0u, 8u, 16u, 24u)) & vec4<u32>(255u);
    return (((bytes * power) & vec4<u32>(255u)) * 3u) >> vec4<u32>(8u);
}
