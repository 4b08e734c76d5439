/* printf: lines of the log. */
#include <spin.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { LINE = 256 }; /* bytes of a line, on the stack of a handler */

typedef struct {
	char *at;
	size_t size;
	size_t length; /* of what would have been written with room enough */
} out_t;

static void put(out_t *o, char c)
{
	if (o->length + 1 < o->size)
		o->at[o->length] = c;
	o->length++;
}

static void fill(out_t *o, char c, int n)
{
	for (; n > 0; n--)
		put(o, c);
}

/* A conversion: %[-0+ #][width][.precision][length]letter. */
typedef struct {
	unsigned left : 1, zero : 1, plus : 1, blank : 1, alternate : 1;
	int width, precision; /* precision -1: none */
	int longs;            /* 64-bit arguments from 2 on */
	int halves;
	char letter;
} spec_t;

static int number(const char **f, va_list *args)
{
	int n = 0;
	if (**f == '*') {
		(*f)++;
		return va_arg(*args, int);
	}
	for (; **f >= '0' && **f <= '9'; (*f)++)
		n = n * 10 + (**f - '0');
	return n;
}

static spec_t parse(const char **f, va_list *args)
{
	spec_t s = {.precision = -1};
	for (;; (*f)++) {
		if (**f == '-')
			s.left = 1;
		else if (**f == '0')
			s.zero = 1;
		else if (**f == '+')
			s.plus = 1;
		else if (**f == ' ')
			s.blank = 1;
		else if (**f == '#')
			s.alternate = 1;
		else
			break;
	}
	s.width = number(f, args);
	if (s.width < 0) {
		s.left = 1;
		s.width = -s.width;
	}
	if (**f == '.') {
		(*f)++;
		s.precision = number(f, args);
	}
	for (;; (*f)++) {
		if (**f == 'l')
			s.longs++;
		else if (**f == 'j')
			s.longs = 2;
		else if (**f == 'h')
			s.halves++;
		else if (**f != 'z' && **f != 't')
			break;
	}
	s.letter = **f;
	return s;
}

/* padded writes text with the sign or prefix in front, blanks or zeros as wanted. */
static void padded(out_t *o, const spec_t *s, const char *prefix, const char *text, int length, int zeros)
{
	int before = (int)strlen(prefix);
	int pad = s->width - before - zeros - length;
	int zeroed = s->zero && !s->left && s->precision < 0;
	if (!s->left && !zeroed)
		fill(o, ' ', pad);
	while (*prefix)
		put(o, *prefix++);
	fill(o, '0', zeroed ? pad + zeros : zeros);
	for (int i = 0; i < length; i++)
		put(o, text[i]);
	if (s->left)
		fill(o, ' ', pad);
}

static void integer(out_t *o, const spec_t *s, unsigned long long v, const char *prefix)
{
	char digits[24];
	int at = sizeof digits, length;
	unsigned base = s->letter == 'x' || s->letter == 'X' || s->letter == 'p' ? 16 : s->letter == 'o' ? 8 : 10;
	const char *letters = s->letter == 'X' ? "0123456789ABCDEF" : "0123456789abcdef";
	if (s->letter == 'p' || (s->alternate && base == 16 && v))
		prefix = s->letter == 'X' ? "0X" : "0x";
	for (; v; v /= base)
		digits[--at] = letters[v % base];
	length = (int)sizeof digits - at;
	int least = s->precision < 0 ? 1 : s->precision;
	padded(o, s, prefix, digits + at, length, least > length ? least - length : 0);
}

static void decimal(out_t *o, const spec_t *s, long long v)
{
	const char *sign = v < 0 ? "-" : s->plus ? "+" : s->blank ? " " : "";
	integer(o, s, v < 0 ? 0 - (unsigned long long)v : (unsigned long long)v, sign);
}

static long long narrow(const spec_t *s, long long v)
{
	return s->halves == 0 ? v : s->halves == 1 ? (short)v : (signed char)v;
}

static unsigned long long narrowed(const spec_t *s, unsigned long long v)
{
	return s->halves == 0 ? v : s->halves == 1 ? (unsigned short)v : (unsigned char)v;
}

static void convert(out_t *o, const spec_t *s, const char *whole, const char *end, va_list *args)
{
	switch (s->letter) {
	case 'd':
	case 'i':
		decimal(o, s, narrow(s, s->longs > 1 ? va_arg(*args, long long) : va_arg(*args, int)));
		return;
	case 'u':
	case 'x':
	case 'X':
	case 'o':
		integer(o, s, narrowed(s, s->longs > 1 ? va_arg(*args, unsigned long long) : va_arg(*args, unsigned)), "");
		return;
	case 'p':
		integer(o, s, (uintptr_t)va_arg(*args, void *), "");
		return;
	case 'c': {
		char c = (char)va_arg(*args, int);
		padded(o, s, "", &c, 1, 0);
		return;
	}
	case 's': {
		const char *text = va_arg(*args, const char *);
		int n = 0;
		if (!text)
			text = "(null)";
		while ((s->precision < 0 || n < s->precision) && text[n])
			n++;
		padded(o, s, "", text, n, 0);
		return;
	}
	case '%':
		put(o, '%');
		return;
	case 'f':
	case 'F':
	case 'e':
	case 'E':
	case 'g':
	case 'G':
	case 'a':
	case 'A':
		(void)va_arg(*args, double);
	}
	while (whole < end)
		put(o, *whole++);
}

int vsnprintf(char *at, size_t size, const char *format, va_list args)
{
	out_t o = {at, size, 0};
	va_list rest;
	va_copy(rest, args);
	while (*format) {
		const char *whole = format;
		if (*format++ != '%') {
			put(&o, *whole);
			continue;
		}
		spec_t s = parse(&format, &rest);
		if (*format)
			format++;
		convert(&o, &s, whole, format, &rest);
	}
	va_end(rest);
	if (size)
		at[o.length < size ? o.length : size - 1] = 0;
	return (int)o.length;
}

int snprintf(char *at, size_t size, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	int n = vsnprintf(at, size, format, args);
	va_end(args);
	return n;
}

int printf(const char *format, ...)
{
	char line[LINE];
	va_list args;
	va_start(args, format);
	int n = vsnprintf(line, sizeof line, format, args);
	va_end(args);
	uint32_t length = n < LINE ? (uint32_t)n : LINE - 1;
	if (length > 0 && line[length - 1] == '\n')
		length--;
	spin_log(line, length);
	return n;
}

int puts(const char *line)
{
	spin_log(line, (uint32_t)strlen(line));
	return 0;
}
