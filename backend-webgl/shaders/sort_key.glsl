// Numbers as integers of the same order: NaN comes last, and the zeros are equal.
uint sort_key(float x) {
    uint bits = floatBitsToUint(x);
    uint size = bits & 0x7fffffffu;
    uint key = size != 0u && bits != size ? ~bits : size | 0x80000000u;
    if (size > 0x7f800000u) key = 0xffffffffu;
    return descending == 1 ? ~key : key;
}
