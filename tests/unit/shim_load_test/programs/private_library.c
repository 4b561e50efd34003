/* Found only through the search path of the program that loads it. */
int private_answer(void);
int private_answer(void) { return 42; }
