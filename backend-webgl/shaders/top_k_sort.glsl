// top_k, pass 2: lists of column indices, best first; -1 fills a short list up. One with an element that is not finite
// is full of -2, which comes before all others.
//!include raw.glsl

float raw(int index) {
    int which = index / list;
    int rank = index - which * list;
    int row = which / lists;
    int from = (which - row * lists) * list;
    int end = min(from + list, cols);
    if (raw_at(src_ranks, row * cols + from) < 0.0) return -2.0;
    for (int at = from; at < end; at++) {
        if (int(raw_at(src_ranks, row * cols + at)) == rank) return float(at);
    }
    return -1.0;
}
