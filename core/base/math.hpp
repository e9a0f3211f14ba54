// Functions of doubles that have the same bits on every machine: additions, products and quotients in a fixed order,
// within two units in the last place (pow: as many as |y ln x| more). Those of libm are chosen by the CPU and differ
// between its versions.
#pragma once

namespace capstan::math {

double exp(double x);
/// -infinity at 0, NaN below.
double log(double x);
double log1p(double x);
/// For x >= 0.
double pow(double x, double y);
/// |x| up to some millions.
double sin(double x);
double cos(double x);

}  // namespace capstan::math
