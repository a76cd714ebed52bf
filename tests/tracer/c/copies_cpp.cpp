// copies_cpp.cpp - a state written by way of the C++ library.
#include "copies.h"

#include <algorithm>
#include <fstream>
#include <string>
#include <vector>

static double *state;

extern "C" void prepare(void)
{
    state = static_cast<double *>(malloc(ELEMENTS * sizeof(double)));
    fill(state, ELEMENTS * sizeof(double));
}

extern "C" void write_parts(void)
{
    std::vector<double> one, two;
    for (int k = 0; k < 40; k++)
        one.push_back(state[k]);
    two.assign(one.begin(), one.end());
    two.insert(two.begin(), state + 50, state + 60);
    std::reverse(one.begin(), one.end());
    std::string text(reinterpret_cast<const char *>(state + 60), 30 * sizeof(double));
    text += std::string(reinterpret_cast<const char *>(state + 90), 5 * sizeof(double));
    char path[1024];
    part_path("vector", path);
    std::ofstream file(path, std::ios::binary);
    file.write(reinterpret_cast<const char *>(one.data()), one.size() * sizeof(double));
    file.write(reinterpret_cast<const char *>(two.data()), two.size() * sizeof(double));
    file << text;
}

extern "C" void go_on(void)
{
    live_on(state, sizeof(double));
}
