// Functions of doubles that have the same bits on every machine: additions, products and quotients in a fixed order,
// within two units in the last place (pow: as many as |y ln x| more). Those of libm are chosen by the CPU and differ
// between its versions. Called wherever a number of a run depends on them: losses, schedules, sampling, positions. A
// change of one bit changes runs that are continued: tests/core/products/float_in_order.cpp has the bits.
#pragma once

namespace capstan::math {

double exp(double x);
/// Natural logarithm: -infinity at 0, NaN below.
double log(double x);
double log1p(double x);
/// x^y, for x >= 0.
double pow(double x, double y);
/// sin and cos, for |x| up to some millions: for larger x, the rest after whole turns has too few exact digits.
double sin(double x);
double cos(double x);

}  // namespace capstan::math
