/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What every atomic operation answers and leaves, for each type it may be used on. Needs no library. */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <urcu/uatomic.h>

static int failures;

static void check(int line, const char *what, bool holds)
{
	if (holds)
		return;
	printf("atomics.c:%d: %s\n", line, what);
	failures++;
}

#define CHECK(condition)	check(__LINE__, #condition, (condition))

/* With orders, which liburcu has since 0.15: the value is what it was without. */
#ifdef CMM_HAS_NO_ORDERS
#define WITH_ORDERS(type, word)
#else
#define WITH_ORDERS(type, word)								\
	do {										\
		uatomic_store(word, 5, CMM_RELEASE);					\
		CHECK(uatomic_load(word, CMM_ACQUIRE) == 5 && uatomic_load(word) == 5);	\
		uatomic_store(word, 6, CMM_SEQ_CST_FENCE);				\
		CHECK(uatomic_load(word, CMM_SEQ_CST_FENCE) == 6);			\
		uatomic_store(word, 7);							\
		CHECK(uatomic_xchg(word, 8, CMM_RELAXED) == 7 && words[1] == 8);	\
		CHECK(uatomic_cmpxchg(word, 7, 9, CMM_ACQ_REL) == 8 && words[1] == 8);	\
		CHECK(uatomic_cmpxchg(word, 8, 9, CMM_RELEASE, CMM_RELAXED) == 8);	\
		CHECK(uatomic_cmpxchg_mo(word, 9, 10, CMM_SEQ_CST, CMM_ACQUIRE) == 9);	\
		CHECK(uatomic_add_return(word, 5, CMM_RELAXED) == 15);			\
		CHECK(uatomic_sub_return(word, 5, CMM_SEQ_CST_FENCE) == 10);		\
		uatomic_add(word, 4, CMM_RELEASE);					\
		uatomic_sub(word, 1, CMM_ACQUIRE);					\
		uatomic_inc(word, CMM_SEQ_CST_FENCE);					\
		uatomic_dec(word, CMM_ACQ_REL);						\
		CHECK(words[1] == 13);							\
		uatomic_or(word, 2, CMM_SEQ_CST);					\
		uatomic_and(word, ~1L, CMM_SEQ_CST_FENCE);				\
		CHECK(words[1] == 14 && words[0] == (type) 0x55 && words[2] == (type) 0x55);	\
	} while (0)
#endif

/* The neighbours show what an operation of the wrong size would do. */
#define INTEGER(type)									\
static void check_##type(void)								\
{											\
	type words[3] = { (type) 0x55, 7, (type) 0x55 };				\
	type *word = &words[1];								\
											\
	CHECK(uatomic_read(word) == 7);							\
	uatomic_set(word, 9);								\
	CHECK(words[1] == 9);								\
	CHECK(uatomic_xchg(word, 11) == 9 && words[1] == 11);				\
	CHECK(uatomic_cmpxchg(word, 10, 12) == 11 && words[1] == 11);			\
	CHECK(uatomic_cmpxchg(word, 11, 12) == 11 && words[1] == 12);			\
	CHECK(uatomic_add_return(word, 5) == 17 && words[1] == 17);			\
	CHECK(uatomic_add_return(word, -3) == 14 && words[1] == 14);			\
	CHECK(uatomic_sub_return(word, 4) == 10 && words[1] == 10);			\
	CHECK(uatomic_sub_return(word, -1) == 11 && words[1] == 11);			\
	uatomic_add(word, 9);								\
	CHECK(words[1] == 20);								\
	uatomic_sub(word, 8);								\
	CHECK(words[1] == 12);								\
	uatomic_inc(word);								\
	uatomic_inc(word);								\
	CHECK(words[1] == 14);								\
	uatomic_dec(word);								\
	CHECK(words[1] == 13);								\
	uatomic_or(word, 2);								\
	CHECK(words[1] == 15);								\
	uatomic_and(word, ~1L);								\
	CHECK(words[1] == 14);								\
	WITH_ORDERS(type, word);							\
	/* The high bits too, all of them, and around. */				\
	uatomic_set(word, 0);								\
	uatomic_or(word, (type) ((type) 1 << (8 * sizeof(type) - 2)));			\
	CHECK(words[1] == (type) ((type) 1 << (8 * sizeof(type) - 2)));			\
	uatomic_and(word, (type) ~((type) 1 << (8 * sizeof(type) - 2)));		\
	CHECK(words[1] == 0);								\
	uatomic_set(word, (type) -1);							\
	uatomic_inc(word);								\
	CHECK(words[1] == 0);								\
	uatomic_dec(word);								\
	CHECK(words[1] == (type) -1);							\
	CHECK(uatomic_add_return(word, 2) == 1);					\
	CHECK(uatomic_sub_return(word, 2) == (type) -1);				\
	CHECK(uatomic_cmpxchg(word, (type) -1, 3) == (type) -1 && words[1] == 3);	\
	CHECK(sizeof(uatomic_read(word)) == sizeof(type));				\
	CHECK(sizeof(uatomic_xchg(word, 0)) == sizeof(type));				\
	CHECK(words[0] == (type) 0x55 && words[2] == (type) 0x55);			\
}

INTEGER(int8_t)
INTEGER(uint8_t)
INTEGER(int16_t)
INTEGER(uint16_t)
INTEGER(int32_t)
INTEGER(uint32_t)
INTEGER(int64_t)
INTEGER(uint64_t)

static void check_pointers(void)
{
	static char first, second;
	char *place = &first;

	CHECK(uatomic_read(&place) == &first);
	uatomic_set(&place, NULL);
	CHECK(place == NULL);
	CHECK(uatomic_cmpxchg(&place, NULL, &second) == NULL && place == &second);
	CHECK(uatomic_xchg(&place, &first) == &second && place == &first);
	CHECK(uatomic_xchg(&place, NULL) == &first && place == NULL);
	/* A flag in the low bits, as lists without locks have it. */
	uatomic_set(&place, (char *) 0x1000);
	uatomic_or(&place, 1);
	CHECK((uintptr_t) place == 0x1001);
	uatomic_and(&place, ~1UL);
	CHECK((uintptr_t) place == 0x1000);
	/* Pointers count in bytes. */
	CHECK(uatomic_add_return(&place, 16) == (char *) 0x1010);
}

static void check_others(void)
{
	enum color { RED, GREEN } color = RED;
	bool yes = false;

	uatomic_set(&color, GREEN);
	CHECK(uatomic_read(&color) == GREEN);
	CHECK(uatomic_xchg(&color, RED) == GREEN && color == RED);
	CHECK(uatomic_xchg(&yes, true) == false && yes);
	CHECK(uatomic_cmpxchg(&yes, true, false) == true && !yes);
}

static void check_variables(void)
{
	int word = 3;

	CHECK(CMM_LOAD_SHARED(word) == 3);
	CHECK(CMM_STORE_SHARED(word, 4) == 4 && word == 4);
	CHECK(_CMM_LOAD_SHARED(word) == 4);
	_CMM_STORE_SHARED(word, 5);
	CMM_ACCESS_ONCE(word)++;
	CHECK(word == 6);
}

int main(void)
{
	check_int8_t();
	check_uint8_t();
	check_int16_t();
	check_uint16_t();
	check_int32_t();
	check_uint32_t();
	check_int64_t();
	check_uint64_t();
	check_pointers();
	check_others();
	check_variables();
	return failures ? EXIT_FAILURE : EXIT_SUCCESS;
}
