/* run_sql DB STATEMENT: changes an index behind the program's back, for tests of the whole program.
 */
#include "datasets/db.h"

#include <stdio.h>

int main(int argc, char **argv) {
    vlp_db *db = NULL;
    if (argc != 3) return 2;
    vlp_status status = vlp_db_open(&db, argv[1], VLP_DB_WRITE);
    if (status == VLP_OK) status = vlp_db_exec(db, argv[2]);
    if (status == VLP_OK && vlp_db_changes(db) == 0)
        status = VLP_FAIL(VLP_ERR_NOT_FOUND, "%s: nothing changed", argv[1]);
    if (status != VLP_OK) fprintf(stderr, "run_sql: %s\n", vlp_error());
    vlp_db_free(db);
    return status == VLP_OK ? 0 : 1;
}
