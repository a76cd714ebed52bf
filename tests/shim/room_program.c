/* room_program.c - print what shim_room says of a folder, for test_shim_room.py. */
#include <inttypes.h>
#include <stdio.h>

#include "room.h"

int main(int count, char **words)
{
    for (int i = 1; i < count; i++)
        printf("%" PRIu64 "\n", shim_room(words[i]));
    return 0;
}
