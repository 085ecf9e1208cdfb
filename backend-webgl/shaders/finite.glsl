// Whether a number is neither NaN nor infinite; by its bits, since compilers may take for granted that it is.
bool finite(float x) {
    return (floatBitsToUint(x) & 0x7f800000u) != 0x7f800000u;
}
