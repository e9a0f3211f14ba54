// What ThreadSanitizer must report with PLANTED, and must not without it: scripts/test.sh --threads checks both.
#include <cstdio>

int main() {
  int numbers[2] = {0, 0}, sum = 0;
#pragma omp parallel num_threads(2)
  {
#pragma omp for schedule(static)
    for (int i = 0; i < 2; ++i) numbers[i] = i;
#ifdef PLANTED
    sum += numbers[0] + numbers[1];
#else
#pragma omp single
    sum += numbers[0] + numbers[1];
#endif
  }
  std::printf("%d\n", sum);
}
