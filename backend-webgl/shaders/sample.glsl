// sample: draws one of the candidates of each row; -1 if one is not finite. A single row is the step's last.
//!include frame.glsl
//!include finite.glsl

uint pcg(uint x) {
    uint state = x * 747796405u + 2891336453u;
    uint word = ((state >> ((state >> 28) + 4u)) ^ state) * 277803737u;
    return (word >> 22) ^ word;
}

float weight(int row, int i) {
    return exp((load1(src_values, k, row, i) - load1(src_values, k, row, 0)) / step_temperature);
}

float draw(int row) {
    for (int i = 0; i < k; i++) {
        if (!finite(load1(src_values, k, row, i))) return -1.0;
    }
    int kept = step_top_k == 0u ? k : min(int(step_top_k), k);
    int drawn = 0;
    if (step_temperature > 0.0) {
        float total = 0.0;
        for (int i = 0; i < kept; i++) total += weight(row, i);
        float stayed = 0.0;
        int prefix = 0;
        for (int i = 0; i < kept; i++) {
//!if MIN_P
            if (i > 0 && weight(row, i) < load1(src_penalties, 8, 0, 7)) break;
//!end
            stayed += weight(row, i);
            prefix = i + 1;
            if (stayed >= step_top_p * total) break;
        }
        uint at = rows == 1 ? step_rows - 1u : uint(row);
        uint h = pcg((step_position + at) ^ pcg(step_seed_lo ^ pcg(step_seed_hi)));
        float goal = float(h >> 8) / 16777216.0 * stayed;
        float running = 0.0;
        for (int i = 0; i < prefix; i++) {
            running += weight(row, i);
            drawn = i;
            if (running > goal) break;
        }
    }
    return load1(src_ids, k, row, drawn);
}

// A loop whose end the driver does not know: four copies of the above take one on software 15 s to compile.
vec4 value(int line, int col) {
    vec4 v = vec4(0.0);
    for (int i = 0; i < min(LANES, out_cols - col); i++) {
        v += draw(line * out_cols + col + i) * vec4(equal(ivec4(i), ivec4(0, 1, 2, 3)));
    }
    return v;
}
