// How rows and columns lie in the results of linear_block.
#ifdef EIGHT
#define BLOCK_ROWS 8
#else
#define BLOCK_ROWS 4
#endif
