// Trits: numbers of three values, five in a byte, as fractions in base 3. Digit n of a byte b is the whole part of
// 3 * (b * 3^n mod 256) / 256. A block of 8 groups has 13 words: five groups are the digits of 8 words, the next 20
// quads of four elements those of 4 words, and the last four quads the first digits of one word.

// The four digits of quad i of a group.
vec4 digits(int group, int i) {
    int quad = (group & 7) * 8 + i;
    bool late = quad >= 60;
    bool middle = quad >= 40;
    int word = late ? 12 : middle ? 8 + (quad & 3) : quad & 7;
    int n = late ? quad - 60 : middle ? (quad - 40) >> 2 : quad >> 3;
    uint power = ((n & 1) != 0 ? 3u : 1u) * ((n & 2) != 0 ? 9u : 1u) * (n == 4 ? 81u : 1u);
    uvec4 bytes = (uvec4(weight_word(TRITS, 13 * (group >> 3) + word)) >> uvec4(0, 8, 16, 24)) & 255u;
    return vec4((((bytes * power) & 255u) * 3u) >> 8);
}
