// A load driver of the NDB API for the workload "command" (docs/driving-with-a-command.md, docs/ndb.md): reads and
// updates of single rows by their key. scripts/build-mysql-cluster compiles it.
//
//   ndb_points ROWS UPDATES   LOADFRAME_LEVEL threads, each with one request at a time, UPDATES percent of them updates;
//                             the table is made where there is none; one line for each request
//   ndb_points ROWS UPDATES changes   four threads; each request is a transaction that changes 1 to LOADFRAME_LEVEL rows
//   ndb_points ROWS UPDATES rows      four threads; ids of LOADFRAME_LEVEL thousand rows, made where there are none
//   ndb_points ROWS UPDATES scan      LOADFRAME_LEVEL threads; each request looks at all rows and finds none
//   ndb_points check          ends with 0 where the table has its first row
//   ndb_points drop           drops the table
#include <time.h>
#include <unistd.h>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>
#include <NdbApi.hpp>

static const char *TABLE = "points";

static double now() {
  timespec ts;
  clock_gettime(CLOCK_MONOTONIC, &ts);
  return ts.tv_sec + ts.tv_nsec / 1e9;
}

static int fail(const char *what, const NdbError &error) {
  fprintf(stderr, "%s: %d %s\n", what, error.code, error.message);
  return 1;
}

static int make_table(Ndb &ndb, unsigned rows, unsigned at_once) {
  NdbDictionary::Dictionary *dict = ndb.getDictionary();
  if (dict->getTable(TABLE) != nullptr) return 0;
  NdbDictionary::Table table(TABLE);
  table.setLogging(true);
  table.setPartitionBalance(NdbDictionary::Object::PartitionBalance_ForRAByLDMx4);  // pieces for more data threads
  NdbDictionary::Column key("id"), value("v");
  key.setType(NdbDictionary::Column::Unsigned);
  key.setPrimaryKey(true);
  value.setType(NdbDictionary::Column::Char);
  value.setLength(100);
  value.setNullable(false);
  table.addColumn(key);
  table.addColumn(value);
  if (dict->createTable(table) != 0) return fail("create table", dict->getNdbError());
  const NdbDictionary::Table *made = dict->getTable(TABLE);
  char text[100];
  memset(text, 'x', sizeof text);
  for (unsigned first = 0; first < rows; first += at_once) {
    NdbTransaction *transaction = ndb.startTransaction();
    if (transaction == nullptr) return fail("load", ndb.getNdbError());
    for (unsigned id = first; id < first + at_once && id < rows; id++) {
      NdbOperation *operation = transaction->getNdbOperation(made);
      operation->insertTuple();
      operation->equal("id", id);
      operation->setValue("v", text);
    }
    if (transaction->execute(NdbTransaction::Commit) != 0) return fail("load", transaction->getNdbError());
    ndb.closeTransaction(transaction);
  }
  return 0;
}

static int check_table(Ndb &ndb) {
  const NdbDictionary::Table *table = ndb.getDictionary()->getTable(TABLE);
  if (table == nullptr) return 3;
  NdbTransaction *transaction = ndb.startTransaction();
  if (transaction == nullptr) return fail("check", ndb.getNdbError());
  NdbOperation *operation = transaction->getNdbOperation(table);
  operation->readTuple(NdbOperation::LM_CommittedRead);
  operation->equal("id", 0u);
  operation->getValue("v");
  int done = transaction->execute(NdbTransaction::Commit);
  if (done != 0) return fail("check", transaction->getNdbError());
  ndb.closeTransaction(transaction);
  return 0;
}

static int drop_table(Ndb &ndb) {
  NdbDictionary::Dictionary *dict = ndb.getDictionary();
  if (dict->getTable(TABLE) == nullptr) return 0;
  return dict->dropTable(TABLE) == 0 ? 0 : fail("drop table", dict->getNdbError());
}

// What a request does. It is not the same for each of them: see the head.
enum What { POINTS, CHANGES, IDS, SCAN };

static int scan(NdbTransaction *transaction, const NdbDictionary::Table *table) {
  NdbScanOperation *operation = transaction->getNdbScanOperation(table);
  if (operation == nullptr || operation->readTuples(NdbOperation::LM_CommittedRead) != 0) return -1;
  NdbScanFilter filter(operation);
  unsigned none = 4000000000u;
  if (filter.begin(NdbScanFilter::AND) != 0 || filter.eq(0, none) != 0 || filter.end() != 0) return -1;
  operation->getValue("id");
  if (transaction->execute(NdbTransaction::NoCommit) != 0) return -1;
  int next;
  while ((next = operation->nextResult(true)) == 0) {
  }
  return next == 1 ? 0 : -1;
}

static void work(Ndb_cluster_connection *connection, unsigned number, unsigned rows, unsigned updates, double until,
                 FILE *output, What what, unsigned level) {
  Ndb ndb(connection, "loadframe");
  ndb.init();
  const NdbDictionary::Table *table = ndb.getDictionary()->getTable(TABLE);
  unsigned seed = number + 1;
  char text[100];
  memset(text, 'y', sizeof text);
  while (true) {
    double start = now();
    if (start >= until) break;
    unsigned most = what == IDS ? level * 1000 : rows;
    unsigned id = rand_r(&seed) % most;
    bool update = what == CHANGES || what == IDS || (what == POINTS && rand_r(&seed) % 100 < updates);
    NdbError error;
    error.code = 0;
    NdbTransaction *transaction = ndb.startTransaction(table, (const char *)&id, sizeof id);
    if (transaction == nullptr) {
      error = ndb.getNdbError();
    } else if (what == SCAN) {
      if (scan(transaction, table) != 0) error = transaction->getNdbError();
      ndb.closeTransaction(transaction);
    } else {
      // each thread has rows of its own, so that none waits for another's lock
      unsigned changes = what == CHANGES ? 1 + rand_r(&seed) % level : 1;
      for (unsigned change = 0; change < changes; change++) {
        NdbOperation *operation = transaction->getNdbOperation(table);
        if (what == IDS) operation->writeTuple();
        else if (update) operation->updateTuple();
        else operation->readTuple(NdbOperation::LM_CommittedRead);
        operation->equal("id", what == CHANGES ? (number * (rows / 4) + change) % rows : id);
        if (update) operation->setValue("v", text); else operation->getValue("v");
      }
      if (transaction->execute(NdbTransaction::Commit) != 0) error = transaction->getNdbError();
      ndb.closeTransaction(transaction);
    }
    double end = now();
    if (error.code == 0) {
      fprintf(output, "{\"start\": %.6f, \"end\": %.6f, \"operation\": \"%s\", \"ok\": true}\n", start, end,
              what == SCAN ? "scan" : update ? "update" : "read");
    } else {
      fprintf(output, "{\"start\": %.6f, \"end\": %.6f, \"operation\": \"%s\", \"error\": \"%d %s\"}\n", start, end,
              update ? "update" : "read", error.code, error.message);
      usleep(10000);
    }
  }
}

static int load(Ndb_cluster_connection &connection, Ndb &ndb, unsigned rows, unsigned updates, What what) {
  const char *path = getenv("LOADFRAME_OUTPUT"), *level = getenv("LOADFRAME_LEVEL");
  const char *duration = getenv("LOADFRAME_DURATION_S");
  FILE *output = path ? fopen(path, "a") : stdout;
  if (output == nullptr) return 1;
  setvbuf(output, nullptr, _IOLBF, 1 << 16);
  // where transactions are what is limited, those that make the table are far smaller than any limit: a coordinator
  // may still hold the records of the one before
  if (make_table(ndb, rows, what == CHANGES ? 10 : 500) != 0) return 1;
  double until = now() + (duration ? atof(duration) : 0);
  std::vector<std::thread> all;
  int at = level ? atoi(level) : 1;
  for (int number = 0; number < (what == CHANGES || what == IDS ? 4 : at); number++)
    all.emplace_back(work, &connection, number, rows, updates, until, output, what, at);
  for (auto &one : all) one.join();
  return 0;
}

int main(int argc, char **argv) {
  const char *address = getenv("LOADFRAME_ADDRESS");
  std::string what = argc > 1 ? argv[1] : "1000";
  int status = 1;
  ndb_init();
  {
    Ndb_cluster_connection connection(address);
    if (connection.connect(4, 1, 0) != 0 || connection.wait_until_ready(30, 0) < 0) {
      fprintf(stderr, "cluster not ready: %s\n", connection.get_latest_error_msg());
      return 1;
    }
    Ndb ndb(&connection, "loadframe");
    if (ndb.init() != 0) return fail("init", ndb.getNdbError());
    if (what == "check") status = check_table(ndb);
    else if (what == "drop") status = drop_table(ndb);
    else {
      std::string how = argc > 3 ? argv[3] : "points";
      What does = how == "changes" ? CHANGES : how == "rows" ? IDS : how == "scan" ? SCAN : POINTS;
      status = load(connection, ndb, atoi(what.c_str()), argc > 2 ? atoi(argv[2]) : 0, does);
    }
  }
  ndb_end(0);
  return status;
}
