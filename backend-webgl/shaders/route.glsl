// route: ids and weights, drawn together. Each fragment chooses for its whole row. The gate is SOFTMAX, SIGMOID, or
// softmax of those chosen.
//!include frame.glsl
//!function unary_sigmoid
//!include finite.glsl

const float LOWEST = -3.0e38;

float largest = LOWEST;
float total = 0.0;
bool broken = false;
// The choice before, and the best after it so far.
float before = 0.0;
int before_id = -1;
float best = 0.0;
int best_id = -1;
// What this fragment's columns get.
vec4 chosen = vec4(-1.0);
vec4 shares = vec4(0.0);

vec4 logits4(int row, int c4) {
    return load4(src_logits, cols, row, c4);
}

// What a softmax needs of all logits, and whether one is not finite.
void look(int row) {
    for (int c4 = 0; c4 < (cols + 3) >> 2; c4++) {
        bvec4 within = inside(4 * c4, 0, cols);
        vec4 logit = logits4(row, c4);
        if (!(finite(logit.x) && finite(logit.y) && finite(logit.z) && finite(logit.w))) broken = true;
        logit = mix(vec4(LOWEST), logit, within);
        float top = max(max(logit.x, logit.y), max(logit.z, logit.w));
        if (top > largest) {
            total *= exp(max(largest - top, -100.0));
            largest = top;
        }
        total += dot(exp(max(logit - largest, -100.0)), vec4(within));
    }
}

vec4 powers(vec4 logit) {
    return exp(max(logit - largest, -100.0));
}

vec4 scores(vec4 logit) {
//!if SOFTMAX
    return powers(logit) / total;
//!else
//!if SIGMOID
    return unary_sigmoid(logit);
//!else
    return logit;
//!end
//!end
}

//!if GROUPED
// The groups whose columns can be chosen, a bit for each.
uint groups_open = 0u;

bool is_open(int group_id) {
    return ((groups_open >> uint(group_id)) & 1u) == 1u;
}

// Opens the groups whose two best columns have the largest sums.
void open_groups(int row) {
    for (int used = 0; used < groups_used; used++) {
        float largest_sum = 0.0;
        int found = -1;
        for (int g = 0; g < groups; g++) {
            vec2 two = vec2(LOWEST);
            for (int c = g * group; c < (g + 1) * group; c++) {
                float own = scores(vec4(load1(src_logits, cols, row, c))).x;
//!if BIASED
                own += load1(src_bias, cols, 0, c);
//!end
                two = vec2(max(two.x, own), max(two.y, min(two.x, own)));
            }
            if (!is_open(g) && (found < 0 || two.x + two.y > largest_sum)) {
                largest_sum = two.x + two.y;
                found = g;
            }
        }
        groups_open |= 1u << uint(found);
    }
}

//!end
// What the choice goes by. Without a bias, the order of the scores is that of the logits.
vec4 keys4(int row, int c4) {
//!if BIASED
    return scores(logits4(row, c4)) + load4(src_bias, cols, 0, c4);
//!else
    return logits4(row, c4);
//!end
}

void consider(float key, int id) {
//!if GROUPED
    if (id >= cols || !is_open(id / group)) return;
//!end
    bool open = before_id < 0 || key < before || (key == before && id > before_id);
    if (id < cols && open && (best_id < 0 || key > best)) {
        best = key;
        best_id = id;
    }
}

void choose(int row, int col) {
    look(row);
    if (broken) return;
//!if GROUPED
    open_groups(row);
//!end
    float together = 0.0;
    for (int choice = 0; choice < choices; choice++) {
        best_id = -1;
        for (int c4 = 0; c4 < (cols + 3) >> 2; c4++) {
            vec4 key = keys4(row, c4);
            consider(key.x, 4 * c4);
            consider(key.y, 4 * c4 + 1);
            consider(key.z, 4 * c4 + 2);
            consider(key.w, 4 * c4 + 3);
        }
        before = best;
        before_id = best_id;
        vec4 logit = vec4(load1(src_logits, cols, row, best_id));
//!if SOFTMAX || SIGMOID
        float own = scores(logit).x;
//!else
        float own = powers(logit).x;
//!end
        together += own;
        bvec4 mine = equal(ivec4(choice), ivec4(col) + ivec4(0, 1, 2, 3));
        chosen = mix(chosen, vec4(float(best_id)), mine);
        shares = mix(shares, vec4(own), mine);
    }
//!if !NORMALISED
    together = 1.0;
//!end
    shares *= scale / max(together, least_sum);
}

vec4 value(int row, int col) {
    choose(row, col);
    return chosen;
}

vec4 value2(int row, int col) {
    return shares;
}
