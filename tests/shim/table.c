/* table.c - a library with enough symbols to fill a hash table, some of them with versions. */
#define EXPORT __attribute__((visibility("default")))

#define EACH(row)                                                                                                      \
	row(a) row(b) row(c) row(d) row(e) row(f) row(g) row(h) row(i) row(j) row(k) row(l) row(m) row(n) row(o)       \
	    row(p) row(q) row(r) row(s) row(t) row(u) row(v) row(w) row(x) row(y) row(z)

#define DEFINE(letter)                                                                                                 \
	EXPORT int table_##letter(void);                                                                               \
	int table_##letter(void)                                                                                       \
	{                                                                                                              \
		return #letter[0];                                                                                     \
	}
EACH(DEFINE)

int table_hidden(void);
EXPORT int table_first(void), table_second(void), table_only(void);
extern EXPORT int table_data;
int table_data = 1;

int table_hidden(void)
{
	return 0;
}

int table_first(void)
{
	return 1;
}

int table_second(void)
{
	return 2;
}

int table_only(void)
{
	return 3;
}

__asm__(".symver table_first, table_versioned@TABLE_1");
__asm__(".symver table_second, table_versioned@@TABLE_2");
__asm__(".symver table_only, table_old@TABLE_1");
