// The keys start..end that query row i of m may see among n, and the score that a dot product becomes. A mask hides the
// keys whose scores it brings down to the lowest.
//!function unary_tanh
const float LOWEST = -3.0e38;

// The place of query row i of m among n keys.
int place_of(int i, int m, int n) {
    return cached != 0 ? int(step_position) + i : max(n + i - m, 0);
}

void visible(int i, int m, int n, out int start, out int end) {
    end = cached != 0 ? min(int(step_position) + int(step_rows), n) : n;
    int at = place_of(i, m, n);
    int before = causal != 0 ? window - 1 : window / 2;
    if (causal != 0) end = min(end, at + 1);
    else if (window > 0) end = min(end, at + before + 1);
    start = window > 0 ? max(at - before, 0) : 0;
    start = min(start, end);
}

//!if EXPLICIT
// Which of four scores, of which those outside a range are the lowest, are seen.
bvec4 shown(vec4 scores) {
    return not(lessThanEqual(scores, vec4(LOWEST)));
}

//!end
vec4 cap(vec4 score) {
    return softcap > 0.0 ? softcap * unary_tanh(score / softcap) : score;
}
