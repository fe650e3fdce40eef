module example.com/rowing

go 1.26.0
