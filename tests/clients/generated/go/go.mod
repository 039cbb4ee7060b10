module vitrine.example/clients/main

go 1.19

require vitrine.example/clients/client v0.0.0

replace vitrine.example/clients/client => ./client
