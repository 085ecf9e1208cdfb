// The keys start..end that query row i of m may see among n, and the score that a dot product becomes.
const float LOWEST = -3.0e38;

void visible(int i, int m, int n, out int start, out int end) {
    end = cached != 0 ? min(int(step_position) + int(step_rows), n) : n;
    int at = cached != 0 ? int(step_position) + i : max(n + i - m, 0);
    int before = causal != 0 ? window - 1 : window / 2;
    if (causal != 0) end = min(end, at + 1);
    else if (window > 0) end = min(end, at + before + 1);
    start = window > 0 ? max(at - before, 0) : 0;
    start = min(start, end);
}

vec4 cap(vec4 score) {
    return softcap > 0.0 ? softcap * act_tanh(score / softcap) : score;
}
