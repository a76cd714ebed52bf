/*
 * vectors: the state of a C++ class, in vectors and members, written with ofstream::write.
 *
 * The file:
 *   step      int64         critical
 *   time      double        critical
 *   residual  double        dead (a member, set before it is read)
 *   field     double 2000   std::vector: element k is dead where k % 3 == 0, else critical; larger
 *                           than the stream's buffer, so written from where it lies
 *   rows      double 10x40  vector of vectors, each smaller than the stream's buffer: the first and
 *                           last row dead, and the first and last of each row; else critical
 *   lazy      double 25     unused: freed as the program ends, which shows nothing
 */
#include <fstream>
#include <utility>
#include <vector>

#include "job.h"

namespace
{

constexpr int FIELD = 2000, ROWS = 10, COLS = 40, LAZY = 25;

class Simulation
{
  public:
    Simulation() : field(FIELD), rows(ROWS, std::vector<double>(COLS, 1.0)), lazy(LAZY, 3.0)
    {
        for (int k = 0; k < FIELD; k++) {
            field[k] = k % 7;
        }
    }

    void advance()
    {
        step++;
        time += 0.5;
        for (int k = 0; k < FIELD; k += 3) {
            field[k] = time + k;
        }
        residual = 0.0;
        for (int k = 0; k < FIELD; k++) {
            if (k % 3 != 0) {
                field[k] = 0.5 * field[k] + field[k - k % 3];
                residual += field[k];
            }
        }
        smooth();
    }

    bool write(const char *path) const
    {
        std::ofstream file(path, std::ios::binary);
        put(file, step);
        put(file, time);
        put(file, residual);
        file.write(reinterpret_cast<const char *>(field.data()), FIELD * sizeof(double));
        for (const auto &row : rows) {
            file.write(reinterpret_cast<const char *>(row.data()), COLS * sizeof(double));
        }
        file.write(reinterpret_cast<const char *>(lazy.data()), LAZY * sizeof(double));
        file.close();
        return file.good();
    }

    bool read(const char *path)
    {
        std::ifstream file(path, std::ios::binary);
        get(file, step);
        get(file, time);
        get(file, residual);
        file.read(reinterpret_cast<char *>(field.data()), FIELD * sizeof(double));
        for (auto &row : rows) {
            file.read(reinterpret_cast<char *>(row.data()), COLS * sizeof(double));
        }
        file.read(reinterpret_cast<char *>(lazy.data()), LAZY * sizeof(double));
        return file.good();
    }

    void digest() const
    {
        job_digest(&time, sizeof(time));
        job_digest(&residual, sizeof(residual));
        job_digest(field.data(), FIELD * sizeof(double));
        for (const auto &row : rows) {
            job_digest(row.data(), COLS * sizeof(double));
        }
    }

    std::int64_t step = 0;

  private:
    template <class T> static void put(std::ofstream &file, const T &value)
    {
        file.write(reinterpret_cast<const char *>(&value), sizeof(value));
    }

    template <class T> static void get(std::ifstream &file, T &value)
    {
        file.read(reinterpret_cast<char *>(&value), sizeof(value));
    }

    void smooth()
    {
        for (int i = 1; i < ROWS - 1; i++) {
            rows[i][0] = rows[i][COLS - 2];
            rows[i][COLS - 1] = rows[i][1];
        }
        for (int j = 0; j < COLS; j++) {
            rows[0][j] = rows[ROWS - 2][j];
            rows[ROWS - 1][j] = rows[1][j];
        }
        for (int i = 1; i < ROWS - 1; i++) {
            for (int j = 1; j < COLS - 1; j++) {
                rows[i][j] = 0.5 * rows[i][j] + 0.1 * (rows[i - 1][j] + rows[i + 1][j] +
                                                       rows[i][j - 1] + rows[i][j + 1]);
            }
        }
    }

    double time = 0.0;
    double residual = 0.0;
    std::vector<double> field;
    std::vector<std::vector<double>> rows;
    std::vector<double> lazy;
};

} // namespace

int main(int argc, char **argv)
{
    job_start(&argc, &argv);
    Simulation simulation;
    if (job_restarting()) {
        job_restarted(simulation.read(job_path("state")));
    }
    while (simulation.step < STEPS) {
        simulation.advance();
        if (job_must_save()) {
            job_open(simulation.step);
            job_saved(simulation.write(job_path("state")));
        }
    }
    simulation.digest();
    return job_end();
}
